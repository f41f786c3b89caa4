BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0015');
CREATE TABLE audit_entries (
	position BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	actor VARCHAR(64) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	subject VARCHAR(255) NOT NULL, 
	detail TEXT NOT NULL, 
	previous_hash VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_audit_entries PRIMARY KEY (position)
);
INSERT INTO "audit_entries" VALUES(1,1795372393627357,'gatehouse','audit.key_began','audit','{"content": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "signed_rows": 0}','0000000000000000000000000000000000000000000000000000000000000000','531385ea1f571faee0c84ecb7a63d1d9c1adcc9427d8edf363be5a2893c38ff5');
INSERT INTO "audit_entries" VALUES(2,1795372393947745,'U0OPERATOR','request.created','ec9eca9211c9b49f','{"additions": ["+15550001"], "duration_seconds": 1800, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "the demo", "removals": [], "request_id": "511d97e0e83b", "starts_at": null, "undo_of": null}','531385ea1f571faee0c84ecb7a63d1d9c1adcc9427d8edf363be5a2893c38ff5','24825d2afdb0c919472b3d1da5bc7908056fd278a6e1098e1ab61e7556f32216');
INSERT INTO "audit_entries" VALUES(3,1795372394041660,'U0APPROVER','request.approved','ec9eca9211c9b49f','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "aa47836a0c0a", "state": "applying"}','24825d2afdb0c919472b3d1da5bc7908056fd278a6e1098e1ab61e7556f32216','fb7a88ea88cfb3138d346af8b3c3c5509dd661cbca061c0a984e32790fe57eef');
INSERT INTO "audit_entries" VALUES(4,1795372394105624,'gatehouse','flow.changed','FW00000000000000000000000000000001','{"after": ["+15550100001", "whatsapp:+15550100002", "+15550001"], "before": ["+15550100001", "whatsapp:+15550100002"], "ended": [], "repaired": [], "request_id": "aa47836a0c0a", "requests": ["ec9eca9211c9b49f"]}','fb7a88ea88cfb3138d346af8b3c3c5509dd661cbca061c0a984e32790fe57eef','072981413214068a367ed2d62f15713c3e51a350cbc95285a930cffbf3111cac');
INSERT INTO "audit_entries" VALUES(5,1795372394105624,'gatehouse','request.applied','ec9eca9211c9b49f','{"additions": ["+15550001"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "aa47836a0c0a"}','072981413214068a367ed2d62f15713c3e51a350cbc95285a930cffbf3111cac','692ef7679869480500e350d9f9be170e12a066397f3b3bd299bcd3cbf841ab05');
INSERT INTO "audit_entries" VALUES(6,1795372394190504,'U0ADMIN','request.created_without_approval','feffdd52add83004','{"additions": ["+15550009"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "it burns", "removals": [], "request_id": "78f303ec8328", "starts_at": null, "undo_of": null}','692ef7679869480500e350d9f9be170e12a066397f3b3bd299bcd3cbf841ab05','5db38ac5f3803d8bc8b84a253a52ccd1185df817e9bbcf0571ed097cbd69e0d4');
INSERT INTO "audit_entries" VALUES(7,1795372394225491,'gatehouse','flow.changed','FW00000000000000000000000000000002','{"after": ["ada@example.com", "+15550009"], "before": ["ada@example.com"], "ended": [], "repaired": [], "request_id": "78f303ec8328", "requests": ["feffdd52add83004"]}','5db38ac5f3803d8bc8b84a253a52ccd1185df817e9bbcf0571ed097cbd69e0d4','92b4df0945600e7b8b767192598343314593e31e263aea6cf36e28bb948079f2');
INSERT INTO "audit_entries" VALUES(8,1795372394225491,'gatehouse','request.applied','feffdd52add83004','{"additions": ["+15550009"], "already_gone": [], "already_there": [], "approvers": [], "flow": "FW00000000000000000000000000000002", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "78f303ec8328"}','92b4df0945600e7b8b767192598343314593e31e263aea6cf36e28bb948079f2','92422e86bb9d45e7be7086813c5a5c5b262dae4d56050264251412248bc19962');
INSERT INTO "audit_entries" VALUES(9,1795372394308604,'U0OPERATOR','request.created','224934c366f0ca9b','{"additions": ["+15550007"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "dc7acdc37beb", "starts_at": "2099-11-23T08:00:00+00:00", "undo_of": null}','92422e86bb9d45e7be7086813c5a5c5b262dae4d56050264251412248bc19962','95a34ae2449df0a9fa078e3605a71f84c1541c5b0b855d443d8d7fa812ba16a4');
INSERT INTO "audit_entries" VALUES(10,1795372394396589,'U0APPROVER','request.approved','224934c366f0ca9b','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "304794954912", "state": "scheduled"}','95a34ae2449df0a9fa078e3605a71f84c1541c5b0b855d443d8d7fa812ba16a4','1ffa89c61537710fbf9a12853d3848d760eefb0c1413fd7705c25eb701607b38');
INSERT INTO "audit_entries" VALUES(11,1795372394475971,'U0OPERATOR','request.created','a9dfe5acf08b70bb','{"additions": ["+15550005"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "b7bfa9cbb3a2", "starts_at": null, "undo_of": null}','1ffa89c61537710fbf9a12853d3848d760eefb0c1413fd7705c25eb701607b38','5d23c87bb228ee1bdde7ae1f3c97e09bda4d8e29bfc22d812deedec210e7e484');
INSERT INTO "audit_entries" VALUES(12,1795372394562330,'U0OPERATOR','request.created','0bbce58bd3953350','{"additions": ["+15550003"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "f989aa0bf67a", "starts_at": null, "undo_of": null}','5d23c87bb228ee1bdde7ae1f3c97e09bda4d8e29bfc22d812deedec210e7e484','2c119ed9af723704e125caab020db07087ae5e242a82f6f67ede8379994685da');
INSERT INTO "audit_entries" VALUES(13,1795372394638937,'U0OPERATOR','preset.saved','demo','{"after": ["+15551111", "+15552222"], "before": [], "request_id": "0a80629b6e3b"}','2c119ed9af723704e125caab020db07087ae5e242a82f6f67ede8379994685da','47bb82b7cccd85e0a6837d88b622f8b2b345f6822d6170ec8f3fd9e9e2b76fed');
INSERT INTO "audit_entries" VALUES(14,1795372394720263,'U0OPERATOR','request.created','ff15d8ce9d7204ea','{"additions": ["+15550006"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "", "removals": [], "request_id": "f1732bcc08b1", "starts_at": null, "undo_of": null}','47bb82b7cccd85e0a6837d88b622f8b2b345f6822d6170ec8f3fd9e9e2b76fed','b6f36f1ab62a71414870e0e0e98db1ada2bcb18e5e303fbf8f5b1f9e2922b877');
INSERT INTO "audit_entries" VALUES(15,1795372394801235,'U0APPROVER','request.approved','ff15d8ce9d7204ea','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "3c702b0ac90d", "state": "applying"}','b6f36f1ab62a71414870e0e0e98db1ada2bcb18e5e303fbf8f5b1f9e2922b877','28686594176f55d93ad005d8fafcf1cb9d79046efb1ac1789ba2138e03fa4540');
INSERT INTO "audit_entries" VALUES(16,1795372397918506,'U0OPERATOR','request.created','4fc2c7ab9d8f7bd5','{"additions": ["+15550004"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "", "removals": [], "request_id": "2f863ec56a8f", "starts_at": null, "undo_of": null}','28686594176f55d93ad005d8fafcf1cb9d79046efb1ac1789ba2138e03fa4540','c12476c547bff68bcbe843d533314c897e4e753b88111d4e7f4464baff2768c4');
INSERT INTO "audit_entries" VALUES(17,1795372398315430,'U0OPERATOR','request.created','43b4d42171128887','{"additions": ["+15550002"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "a trial", "removals": [], "request_id": "3f453c759877", "starts_at": null, "undo_of": null}','c12476c547bff68bcbe843d533314c897e4e753b88111d4e7f4464baff2768c4','de2b1f6fae1cc05f059edc670f98df00d07381bd9be281d663789ac396c81be4');
INSERT INTO "audit_entries" VALUES(18,1795372398737639,'U0APPROVER','request.approved','43b4d42171128887','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "98e4e26ec9ec", "state": "applying"}','de2b1f6fae1cc05f059edc670f98df00d07381bd9be281d663789ac396c81be4','47756efa6215fe9c1175c285e2a7e3c1d991acb49ef036be1d7573d06bb5d00b');
CREATE TABLE audit_head (
	id INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_audit_head PRIMARY KEY (id)
);
INSERT INTO "audit_head" VALUES(1,18,'47756efa6215fe9c1175c285e2a7e3c1d991acb49ef036be1d7573d06bb5d00b');
CREATE TABLE cards (
	"key" VARCHAR(255) NOT NULL, 
	channel_id VARCHAR(64) NOT NULL, 
	message_ts VARCHAR(32) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	sent_at BIGINT NOT NULL, 
	CONSTRAINT pk_cards PRIMARY KEY ("key")
);
INSERT INTO "cards" VALUES('incident:1','C0ALERTS','1795372393.911624','0112fe133273df6de2bb29807770174c393d541c28799a148c32ab5e0ba51967',1795372393918040);
INSERT INTO "cards" VALUES('request:ec9eca9211c9b49f','C0APPROVALS','1795372393.977342','27b2fa9bd7f9d1d500c5853048afa63545976e224480cb6a036876e6131c11eb',1795372394168491);
INSERT INTO "cards" VALUES('request:feffdd52add83004','C0APPROVALS','1795372394.277167','fcde6e7ea59fa3dde27b0b9db79f15ea386e6d26b95e4ca79e0baa5e32d4d8d1',1795372394284854);
INSERT INTO "cards" VALUES('request:224934c366f0ca9b','C0APPROVALS','1795372394.335757','3cf297a33c2763c3678054b9325d42b45d1ff27b4a5f18ecce7f64363c0eb05f',1795372394443204);
INSERT INTO "cards" VALUES('request:a9dfe5acf08b70bb','C0APPROVALS','1795372394.508617','51e2120583014de7f155d4479515ceeda6e2e0e8127b2c7f39732b6837029c14',1795372394509939);
INSERT INTO "cards" VALUES('request:0bbce58bd3953350','C0APPROVALS','1795372394.587066','312a1b67630d41f9305aaad6f5ed8422188e82db78a721aee6e120a2f4506741',1795372394588499);
INSERT INTO "cards" VALUES('request:ff15d8ce9d7204ea','C0APPROVALS','1795372394.758129','38fdfbefdf729d3036a82a0253f54cb8924affdd2ce819579042f47230f35eb8',1795372395989554);
CREATE TABLE flow_changes (
	id INTEGER NOT NULL, 
	flow_key VARCHAR(34) NOT NULL, 
	at BIGINT NOT NULL, 
	content JSON NOT NULL, 
	CONSTRAINT pk_flow_changes PRIMARY KEY (id)
);
INSERT INTO "flow_changes" VALUES(1,'FW00000000000000000000000000000001',1795372394105624,'{"additions":["+15550001"],"removals":[],"request_ids":["ec9eca9211c9b49f"],"ended":[]}');
INSERT INTO "flow_changes" VALUES(2,'FW00000000000000000000000000000002',1795372394225491,'{"additions":["+15550009"],"removals":[],"request_ids":["feffdd52add83004"],"ended":[]}');
CREATE TABLE flow_posts (
	id VARCHAR(32) NOT NULL, 
	flow_key VARCHAR(34) NOT NULL, 
	sent_at BIGINT NOT NULL, 
	content JSON NOT NULL, signature VARCHAR(64), 
	CONSTRAINT pk_flow_posts PRIMARY KEY (id)
);
CREATE TABLE gateway_waits (
	ticket INTEGER NOT NULL, 
	organization BIGINT NOT NULL, 
	client VARCHAR(40) NOT NULL, 
	until BIGINT NOT NULL, 
	CONSTRAINT pk_gateway_waits PRIMARY KEY (ticket)
);
CREATE TABLE grants (
	flow_key VARCHAR(34) NOT NULL, 
	identity TEXT NOT NULL, 
	flow_sid VARCHAR(34) NOT NULL, 
	request_id VARCHAR(32) NOT NULL, 
	granted_by JSON NOT NULL, 
	approved_by JSON NOT NULL, 
	granted_at BIGINT NOT NULL, 
	ends_at BIGINT, signature VARCHAR(64), 
	CONSTRAINT pk_grants PRIMARY KEY (flow_key, identity)
);
INSERT INTO "grants" VALUES('FW00000000000000000000000000000001','"+15550001"','FW00000000000000000000000000000001','ec9eca9211c9b49f','{"slack_user_id":"U0OPERATOR","name":"Otto Operator"}','[{"slack_user_id":"U0APPROVER","name":"Ada Approver"}]',1795372394105624,1795374194105624,'76047556117a2d1cfc0b2f13b4d5da48a8b960205af932aaaf23309b62cebf79');
INSERT INTO "grants" VALUES('FW00000000000000000000000000000002','"+15550009"','FW00000000000000000000000000000002','feffdd52add83004','{"slack_user_id":"U0ADMIN","name":"Adam Admin"}','[]',1795372394225491,NULL,'8f91c7df2bb239aeeb2465e6f735137f5215b2458268080d61a6a44cb307b866');
CREATE TABLE home_views (
	slack_user_id VARCHAR(64) NOT NULL, 
	opened_at BIGINT NOT NULL, 
	published_at BIGINT, 
	hash VARCHAR(255), 
	fingerprint VARCHAR(64) NOT NULL, 
	unsure_until BIGINT, 
	CONSTRAINT pk_home_views PRIMARY KEY (slack_user_id)
);
INSERT INTO "home_views" VALUES('U0OPERATOR',1795372394648664,1795372397733436,'1795372398.h46','223505d0fc83365d407ca2927c434d7de16f3534bea6bac45df173e164b337ad',NULL);
INSERT INTO "home_views" VALUES('U0APPROVER',1795372398697816,1795372398720607,'1795372399.h54','701e7d8b7b307d5a51ad92bba1867a7234a1328fc250308807028eea0a5ef935',NULL);
CREATE TABLE incidents (
	id INTEGER NOT NULL, 
	organization BIGINT NOT NULL, 
	code INTEGER NOT NULL, 
	opened_at BIGINT NOT NULL, 
	closed_at BIGINT, 
	refusals INTEGER NOT NULL, 
	detail JSON NOT NULL, 
	CONSTRAINT pk_incidents PRIMARY KEY (id)
);
INSERT INTO "incidents" VALUES(1,9,45,1795372393853131,NULL,1,'{"own":{"minute":[1,100],"day":[1,1000],"concurrent":[1,5]},"words":"Your organization has exceeded its API call rate limit of 1,000 requests a day.","sent_code":45,"is_foreign":true,"may_be_plan":false,"is_lowered":false,"clients":{},"ended_because":""}');
CREATE TABLE jobs (
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	subject VARCHAR(255) NOT NULL, 
	payload JSON NOT NULL, 
	due_at BIGINT NOT NULL, 
	generation BIGINT NOT NULL, 
	tries INTEGER NOT NULL, 
	owner VARCHAR(64), 
	leased_until BIGINT, 
	last_error TEXT, signature VARCHAR(64), 
	CONSTRAINT pk_jobs PRIMARY KEY ("key")
);
INSERT INTO "jobs" VALUES('retain','retain','retain','{}',1795458793802165,1,0,NULL,NULL,NULL,'4faef1fc1b47d36b5bf5ba2d984bf07913c809b2d352ef3e9fc583d35c862097');
INSERT INTO "jobs" VALUES('record','record','record','{}',1795372403665923,1,0,NULL,NULL,NULL,'74c65b7dab9a36eaf77a725de13d167733711022098892602891bc9909bf6161');
INSERT INTO "jobs" VALUES('audit_witness','audit_witness','audit_witness','{}',1795458793627357,1,0,NULL,NULL,NULL,'29cb4606302f1a0bc9875c030dfbe0c9daf58269d7ce335b6b462bd54800efc7');
INSERT INTO "jobs" VALUES('quota_tidy','quota_tidy','quota_tidy','{}',1795375993627357,1,0,NULL,NULL,NULL,'330c234dc4f2cb433fc8b7a219a47c7b7cffd76e0dfa28717e381c11b9195e46');
INSERT INTO "jobs" VALUES('probe:9','probe','eu/20077314','{}',1795373293853131,1,0,NULL,NULL,NULL,'cf0a59cccf83954d9e37aac2347bfd8f480dde4371103debf5bb709c49669513');
INSERT INTO "jobs" VALUES('apply:FW00000000000000000000000000000001','testusers.apply','FW00000000000000000000000000000001','{}',1795372401079648,2,2,NULL,NULL,NULL,'8ef930b66a44c6caf7b0acdbfbbdf8f10c6118afb1d6fe48fc2a8a6c5edc38bc');
INSERT INTO "jobs" VALUES('start:224934c366f0ca9b','testusers.start','224934c366f0ca9b','{}',4098067200000000,1,0,NULL,NULL,NULL,'c1213ab3d2870be2ac7f0882b12c75543fc8bd59008a4568b3e2dfa5d827f37c');
INSERT INTO "jobs" VALUES('expire:a9dfe5acf08b70bb','testusers.expire','a9dfe5acf08b70bb','{}',4102444800000000,1,0,NULL,NULL,NULL,'ad5627f62d79c3cfb8acd97d1a46a5fc974340fa7c2308c1ea41997f73310159');
INSERT INTO "jobs" VALUES('unposted:a9dfe5acf08b70bb','testusers.unposted','a9dfe5acf08b70bb','{}',1795372454475971,1,0,NULL,NULL,NULL,'ebace7a3ef78e6aca89d0e1b493b38ca3bd8d3d6d9439e5124f87cf7f848a500');
INSERT INTO "jobs" VALUES('remind:a9dfe5acf08b70bb','testusers.remind','a9dfe5acf08b70bb','{}',4102444800000000,1,0,NULL,NULL,NULL,'3690751c3b6e8ebf666a88673d421e082908d07198af616789b18d258aa898b6');
INSERT INTO "jobs" VALUES('expire:0bbce58bd3953350','testusers.expire','0bbce58bd3953350','{}',4102444800000000,1,0,NULL,NULL,NULL,'37a33bdc7942576865d072c912a2f84be1257992b68fb478bbb03b1755453de2');
INSERT INTO "jobs" VALUES('unposted:0bbce58bd3953350','testusers.unposted','0bbce58bd3953350','{}',1795372454562330,1,0,NULL,NULL,NULL,'d732fbe00cf3d4698cdb2e6cbf6e1fec670df910d5111f2a51c087dbf428fc1e');
INSERT INTO "jobs" VALUES('remind:0bbce58bd3953350','testusers.remind','0bbce58bd3953350','{}',4102444800000000,1,0,NULL,NULL,NULL,'6d6013489b2f439d3ab2281ef3881d68ab214d5b08c17e49bd7fc10386596f1a');
INSERT INTO "jobs" VALUES('home:U0OPERATOR','home','U0OPERATOR','{}',1795372400733436,8,0,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('apply:FW00000000000000000000000000000002','testusers.apply','FW00000000000000000000000000000002','{}',1795372398949438,1,2,NULL,NULL,NULL,'d47a62f2d01e28105bd6668e2a7b8f11dca02456b5c6f201f5e20d8ab8a3d530');
INSERT INTO "jobs" VALUES('expire:4fc2c7ab9d8f7bd5','testusers.expire','4fc2c7ab9d8f7bd5','{}',4102444800000000,1,0,NULL,NULL,NULL,'1c1dd2fdb1fa38234474887e53fc5f834d97bd319b68bace8867f65d49efe5f4');
INSERT INTO "jobs" VALUES('unposted:4fc2c7ab9d8f7bd5','testusers.unposted','4fc2c7ab9d8f7bd5','{}',1795372457918506,1,0,NULL,NULL,NULL,'ad9bff5a81d230f90c390b814991791a4b2688b9b2fe44492a65dfac3cc0fe05');
INSERT INTO "jobs" VALUES('remind:4fc2c7ab9d8f7bd5','testusers.remind','4fc2c7ab9d8f7bd5','{}',4102444800000000,1,0,NULL,NULL,NULL,'259a1655d1bc3bdc91982a4160742a5bf309f0a29d47a8068fece186d4f0aba2');
INSERT INTO "jobs" VALUES('send:request:4fc2c7ab9d8f7bd5','send','request:4fc2c7ab9d8f7bd5','{}',1795372398960320,1,1,NULL,NULL,'Slack can''t be reached right now.','af3e1287296591260219e07591b49aac9900b0c92c2b79d08955b0cfc00c56fa');
INSERT INTO "jobs" VALUES('send:request:43b4d42171128887','send','request:43b4d42171128887','{}',1795372400079648,3,0,NULL,NULL,'Slack can''t be reached right now.','c2584bba3db5f60344f56b3f910d19b75cd01a9e2f421533b824eb3e7ff5bcec');
INSERT INTO "jobs" VALUES('home:U0APPROVER','home','U0APPROVER','{}',1795372401720607,2,0,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('homes:request:43b4d42171128887','homes','request:43b4d42171128887','{}',1795372400079648,1,0,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('interaction:c11c5ed000000001','testusers.interaction','0bbce58bd3953350','{"act":"approve","request_id":"0bbce58bd3953350","slack_user_id":"U0APPROVER","team_ids":["T0GATEHOUSE","T0GATEHOUSE"],"reply_to":"","denial_reason":""}',1795372400114657,1,0,NULL,NULL,NULL,'c13477401d0d6bfd2044cbe01eb1ffc5f3ed37ce9e8db24c6685a8729ffffa9a');
CREATE TABLE listings (
	data_center VARCHAR(16) NOT NULL, 
	fetched_at BIGINT NOT NULL, 
	organizations JSON NOT NULL, digest VARCHAR(64) DEFAULT '' NOT NULL, 
	CONSTRAINT pk_listings PRIMARY KEY (data_center)
);
INSERT INTO "listings" VALUES('com',1795372393803277,'[{"organization_id":"10234695","name":"Northwind Traders","contact_name":"Maria Anders","email":"maria@10234695.example","is_default_org":true,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2016-02-18","time_zone":"PST","is_org_active":true,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"10407630","name":"Tailspin Toys","contact_name":"John Smith","email":"john@10407630.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2019-07-03","time_zone":"PST","is_org_active":true,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"10988211","name":"🌵 Cactus & Co","contact_name":"Ana Ruiz","email":"ana@10988211.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2023-11-27","time_zone":"PST","is_org_active":true,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"10511902","name":"Wingtip Archive","contact_name":"Lee Gold","email":"lee@10511902.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2014-05-30","time_zone":"PST","is_org_active":false,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2}]','ed9c0f4d89dd53ce054096a0200a8b886606812a19d699bf02fab05531b86a3a');
INSERT INTO "listings" VALUES('eu',1795372393809360,'[{"organization_id":"20077314","name":"Müller & Söhne <Berlin>","contact_name":"Jörg Müller","email":"joerg@20077314.example","is_default_org":true,"language_code":"de","fiscal_year_start_month":0,"account_created_date":"2017-01-09","time_zone":"CET","is_org_active":true,"currency_id":"460000000000099","currency_code":"EUR","currency_symbol":"€","currency_format":"###,##0.00","price_precision":2},{"organization_id":"20077315","name":"Northwind Traders","contact_name":"Hanna Moos","email":"hanna@20077315.example","is_default_org":false,"language_code":"de","fiscal_year_start_month":0,"account_created_date":"2018-10-22","time_zone":"CET","is_org_active":true,"currency_id":"460000000000099","currency_code":"EUR","currency_symbol":"€","currency_format":"###,##0.00","price_precision":2},{"organization_id":"20145880","name":"Café Zoë","contact_name":"Zoë Laurent","email":"zoe@20145880.example","is_default_org":false,"language_code":"de","fiscal_year_start_month":0,"account_created_date":"2021-03-15","time_zone":"CET","is_org_active":true,"currency_id":"460000000000099","currency_code":"EUR","currency_symbol":"€","currency_format":"###,##0.00","price_precision":2}]','e58e4fa8109e57c0ede6d385cff0c5e99fc27a860e15d8d94dc27701888d5dd5');
INSERT INTO "listings" VALUES('in',1795372393813872,'[{"organization_id":"60018842","name":"Sundaram Textiles","contact_name":"Priya Nair","email":"priya@60018842.example","is_default_org":true,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2015-08-12","time_zone":"IST","is_org_active":true,"currency_id":"460000000000103","currency_code":"INR","currency_symbol":"₹","currency_format":"###,##0.00","price_precision":2},{"organization_id":"60020957","name":"Ganges Spice Exports","contact_name":"Ravi Kumar","email":"ravi@60020957.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2020-12-01","time_zone":"IST","is_org_active":true,"currency_id":"460000000000103","currency_code":"INR","currency_symbol":"₹","currency_format":"###,##0.00","price_precision":2}]','1d3a8a204f79eb331c883b3d378de20e89f34f7297aeea7ab89430719f3f1390');
INSERT INTO "listings" VALUES('com.au',1795372393818378,'[{"organization_id":"70003391","name":"Southern Cross Surfboards","contact_name":"Mia O''Brien","email":"mia@70003391.example","is_default_org":true,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2018-04-04","time_zone":"AEST","is_org_active":true,"currency_id":"460000000000105","currency_code":"AUD","currency_symbol":"A$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"70003977","name":"Outback *Tools* _Hire_","contact_name":"Jack Walsh","email":"jack@70003977.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2013-09-19","time_zone":"AEST","is_org_active":false,"currency_id":"460000000000105","currency_code":"AUD","currency_symbol":"A$","currency_format":"###,##0.00","price_precision":2}]','99400c3461e58c7038bc9327dcd9b9ea5e279e33f44181ad01a638134318bbba');
INSERT INTO "listings" VALUES('jp',1795372393822855,'[{"organization_id":"80004410","name":"桜井製作所","contact_name":"桜井 健","email":"ken@80004410.example","is_default_org":true,"language_code":"ja","fiscal_year_start_month":0,"account_created_date":"2019-02-28","time_zone":"JST","is_org_active":true,"currency_id":"460000000000107","currency_code":"JPY","currency_symbol":"¥","currency_format":"###,##0.00","price_precision":0},{"organization_id":"80004655","name":"Kyoto Paper Works","contact_name":"Yui Tanaka","email":"yui@80004655.example","is_default_org":false,"language_code":"ja","fiscal_year_start_month":0,"account_created_date":"2022-06-16","time_zone":"JST","is_org_active":true,"currency_id":"460000000000107","currency_code":"JPY","currency_symbol":"¥","currency_format":"###,##0.00","price_precision":0}]','b417da47333cc9672ae3d5377b17d63c534da9c4c4b6a45e149a08c06e3af65d');
INSERT INTO "listings" VALUES('ca',1795372393827260,'[{"organization_id":"90001276","name":"Maple <Leaf> Outdoors","contact_name":"Chloé Tremblay","email":"chloe@90001276.example","is_default_org":true,"language_code":"fr","fiscal_year_start_month":0,"account_created_date":"2020-01-31","time_zone":"EST","is_org_active":true,"currency_id":"460000000000109","currency_code":"CAD","currency_symbol":"CA$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"90001301","name":"Hudson & Daughters","contact_name":"Emma Roy","email":"emma@90001301.example","is_default_org":false,"language_code":"fr","fiscal_year_start_month":0,"account_created_date":"2021-08-25","time_zone":"EST","is_org_active":true,"currency_id":"460000000000109","currency_code":"CAD","currency_symbol":"CA$","currency_format":"###,##0.00","price_precision":2}]','d82d2b751d07828c03ec2adf8ad78f0c4d31b1f295661aa6c5be6310a522a3ba');
INSERT INTO "listings" VALUES('com.cn',1795372393830977,'[{"organization_id":"50006120","name":"上海晨光贸易有限公司","contact_name":"王 芳","email":"fang@50006120.example","is_default_org":true,"language_code":"zh","fiscal_year_start_month":0,"account_created_date":"2018-11-11","time_zone":"CST","is_org_active":true,"currency_id":"460000000000111","currency_code":"CNY","currency_symbol":"CN¥","currency_format":"###,##0.00","price_precision":2},{"organization_id":"50006544","name":"Lotus Electronics","contact_name":"Li Wei","email":"wei@50006544.example","is_default_org":false,"language_code":"zh","fiscal_year_start_month":0,"account_created_date":"2012-03-07","time_zone":"CST","is_org_active":false,"currency_id":"460000000000111","currency_code":"CNY","currency_symbol":"CN¥","currency_format":"###,##0.00","price_precision":2}]','13bf4ce074230c7352af10be6e1fc2a70aaebc8098b8f7ec534f5dd98fb2abb9');
INSERT INTO "listings" VALUES('sa',1795372393834763,'[{"organization_id":"30002218","name":"شركة النخيل التجارية","contact_name":"نورة العتيبي","email":"noura@30002218.example","is_default_org":true,"language_code":"ar","fiscal_year_start_month":0,"account_created_date":"2021-05-05","time_zone":"AST","is_org_active":true,"currency_id":"460000000000113","currency_code":"SAR","currency_symbol":"ر.س","currency_format":"###,##0.00","price_precision":2},{"organization_id":"30002290","name":"Red Sea Logistics","contact_name":"Omar Saleh","email":"omar@30002290.example","is_default_org":false,"language_code":"ar","fiscal_year_start_month":0,"account_created_date":"2024-02-14","time_zone":"AST","is_org_active":true,"currency_id":"460000000000113","currency_code":"SAR","currency_symbol":"ر.س","currency_format":"###,##0.00","price_precision":2}]','01d4c7c46652f151675fc17caa916658f84509b6d7b309c02ec206a9a106c12a');
CREATE TABLE machine_clocks (
	boot VARCHAR(64) NOT NULL, 
	"offset" BIGINT NOT NULL, 
	CONSTRAINT pk_machine_clocks PRIMARY KEY (boot)
);
INSERT INTO "machine_clocks" VALUES('1b274240-7c3a-4e03-9b19-f7311091ff73',1795370968687835);
CREATE TABLE "outbox_messages" (
	id INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	subject VARCHAR(255) NOT NULL, 
	payload JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	tries INTEGER NOT NULL, 
	sent_at BIGINT, 
	failure TEXT, 
	CONSTRAINT pk_letters PRIMARY KEY (id)
);
INSERT INTO "outbox_messages" VALUES(1,'incident:1','incident_card','1','{}',1795372393870016,1,1795372393918040,NULL);
INSERT INTO "outbox_messages" VALUES(2,'request:ec9eca9211c9b49f','testusers.card','ec9eca9211c9b49f','{}',1795372393947745,1,1795372393978761,NULL);
INSERT INTO "outbox_messages" VALUES(3,'request:ec9eca9211c9b49f','testusers.card','ec9eca9211c9b49f','{}',1795372394041660,0,1795372394100697,NULL);
INSERT INTO "outbox_messages" VALUES(4,'request:ec9eca9211c9b49f','testusers.card','ec9eca9211c9b49f','{}',1795372394105624,0,1795372394168491,NULL);
INSERT INTO "outbox_messages" VALUES(5,'requester:ec9eca9211c9b49f','testusers.outcome','ec9eca9211c9b49f','{"event":"applied"}',1795372394105624,0,1795372394181923,NULL);
INSERT INTO "outbox_messages" VALUES(6,'request:feffdd52add83004','testusers.card','feffdd52add83004','{}',1795372394225491,1,1795372394284854,NULL);
INSERT INTO "outbox_messages" VALUES(7,'requester:feffdd52add83004','testusers.outcome','feffdd52add83004','{"event":"applied"}',1795372394225491,0,1795372394279032,NULL);
INSERT INTO "outbox_messages" VALUES(8,'request:224934c366f0ca9b','testusers.card','224934c366f0ca9b','{}',1795372394308604,1,1795372394337583,NULL);
INSERT INTO "outbox_messages" VALUES(9,'request:224934c366f0ca9b','testusers.card','224934c366f0ca9b','{}',1795372394396589,0,1795372394443204,NULL);
INSERT INTO "outbox_messages" VALUES(10,'requester:224934c366f0ca9b','testusers.outcome','224934c366f0ca9b','{"event":"scheduled"}',1795372394396589,0,1795372394470941,NULL);
INSERT INTO "outbox_messages" VALUES(11,'request:a9dfe5acf08b70bb','testusers.card','a9dfe5acf08b70bb','{}',1795372394475971,1,1795372394509939,NULL);
INSERT INTO "outbox_messages" VALUES(12,'request:0bbce58bd3953350','testusers.card','0bbce58bd3953350','{}',1795372394562330,1,1795372394588499,NULL);
INSERT INTO "outbox_messages" VALUES(13,'request:ff15d8ce9d7204ea','testusers.card','ff15d8ce9d7204ea','{}',1795372394720263,1,1795372394759338,NULL);
INSERT INTO "outbox_messages" VALUES(14,'request:ff15d8ce9d7204ea','testusers.card','ff15d8ce9d7204ea','{}',1795372394801235,0,1795372394856435,NULL);
INSERT INTO "outbox_messages" VALUES(15,'request:ff15d8ce9d7204ea','testusers.card','ff15d8ce9d7204ea','{}',1795372394865504,0,1795372394905637,NULL);
INSERT INTO "outbox_messages" VALUES(16,'request:ff15d8ce9d7204ea','testusers.card','ff15d8ce9d7204ea','{}',1795372395949438,0,1795372395989554,NULL);
INSERT INTO "outbox_messages" VALUES(17,'request:4fc2c7ab9d8f7bd5','testusers.card','4fc2c7ab9d8f7bd5','{}',1795372397918506,1,NULL,NULL);
INSERT INTO "outbox_messages" VALUES(18,'request:43b4d42171128887','testusers.card','43b4d42171128887','{}',1795372398315430,1,1795372398766070,NULL);
INSERT INTO "outbox_messages" VALUES(19,'request:43b4d42171128887','testusers.card','43b4d42171128887','{}',1795372398737639,1,NULL,NULL);
INSERT INTO "outbox_messages" VALUES(20,'request:43b4d42171128887','testusers.card','43b4d42171128887','{}',1795372400079648,0,NULL,NULL);
CREATE TABLE presets (
	name VARCHAR(40) NOT NULL, 
	identities JSON NOT NULL, 
	saved_by JSON NOT NULL, 
	saved_at BIGINT NOT NULL, 
	CONSTRAINT pk_presets PRIMARY KEY (name)
);
INSERT INTO "presets" VALUES('demo','["+15551111","+15552222"]','{"slack_user_id":"U0OPERATOR","name":"Otto Operator"}',1795372394638937);
CREATE TABLE quota_calls (
	organization BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	reserved_at BIGINT NOT NULL, 
	slot_free_at BIGINT NOT NULL, 
	permit_until BIGINT NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	slack_user_id VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_quota_calls PRIMARY KEY (organization, number)
);
INSERT INTO "quota_calls" VALUES(1,1,1795372393723748,1795372453785871,1795372393780702,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(2,1,1795372393733229,1795372453792073,1795372393783316,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(3,1,1795372393740035,1795372453798384,1795372393785246,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(4,1,1795372393746752,1795372453804078,1795372393786529,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(5,1,1795372393752897,1795372453809889,1795372393788188,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(6,1,1795372393759344,1795372453815655,1795372393789944,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(7,1,1795372393765160,1795372453821490,1795372393791212,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(8,1,1795372393771882,1795372453827995,1795372393792931,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(9,1,1795372393847729,1795372453903303,1795372393872151,'check','U0OPERATOR');
CREATE TABLE quota_hours (
	organization BIGINT NOT NULL, 
	hour_at BIGINT NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	slack_user_id VARCHAR(64) NOT NULL, 
	calls INTEGER NOT NULL, 
	CONSTRAINT pk_quota_hours PRIMARY KEY (organization, hour_at, kind, slack_user_id)
);
CREATE TABLE quota_organizations (
	id INTEGER NOT NULL, 
	data_center VARCHAR(16) NOT NULL, 
	organization_id VARCHAR(255) NOT NULL, 
	summed BIGINT NOT NULL, 
	"plan" VARCHAR(16), 
	lowered_day INTEGER, 
	reported_number BIGINT, 
	reported_limit INTEGER, 
	reported_remaining INTEGER, 
	reported_unsure INTEGER, 
	reported_resets_at BIGINT, 
	blocks JSON NOT NULL, 
	probing_until BIGINT NOT NULL, 
	muted_until BIGINT NOT NULL, 
	watched_at BIGINT NOT NULL, muted_by TEXT, lowered_concurrent INTEGER, lowered_until BIGINT, 
	CONSTRAINT pk_quota_organizations PRIMARY KEY (id), 
	CONSTRAINT uq_quota_organizations_data_center_organization_id UNIQUE (data_center, organization_id)
);
INSERT INTO "quota_organizations" VALUES(1,'com','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(2,'eu','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(3,'in','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(4,'com.au','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(5,'jp','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(6,'ca','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(7,'com.cn','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(8,'sa','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(9,'eu','20077314',0,NULL,1000,NULL,NULL,NULL,NULL,NULL,'[{"code":45,"since":1795372393.8531308,"until":1795373293.8531308,"failed_tries":0}]',0,0,0,NULL,NULL,NULL);
CREATE TABLE received_events (
	event_id VARCHAR(255) NOT NULL, 
	received_at BIGINT NOT NULL, 
	answered_at BIGINT, 
	CONSTRAINT pk_received_events PRIMARY KEY (event_id)
);
INSERT INTO "received_events" VALUES('signature:c633f531e6e49c5cd8885f2c703308f46f1f8274ef04d49197e449fc991f74dd',1795372393692150,1795372393692150);
INSERT INTO "received_events" VALUES('signature:511d97e0e83bfc6bd44d7d1542f8481141f29323e77a52d2f713f5d1bb534b26',1795372393924393,1795372393924393);
INSERT INTO "received_events" VALUES('signature:aa47836a0c0a3922fc1b491d6a23c842a911635ff32c865f3023173716ea91b7',1795372394030133,1795372394030133);
INSERT INTO "received_events" VALUES('signature:78f303ec832823fb277bb3e9ba921b109c52acc71497dd250424b854bb019ed7',1795372394178111,1795372394178111);
INSERT INTO "received_events" VALUES('signature:dc7acdc37beb45cc3273e65af97d7fa398f41b339b5b7ed48689590b3f52e230',1795372394289015,1795372394289015);
INSERT INTO "received_events" VALUES('signature:3047949549121a5227ec6b8ace0e547bbdde9993df99bdd0b64b89ee2ef589e4',1795372394386006,1795372394386006);
INSERT INTO "received_events" VALUES('signature:b7bfa9cbb3a27c3e507cb9a6eacca8a3718128d992a410c1650cdedcac838f48',1795372394451043,1795372394451043);
INSERT INTO "received_events" VALUES('signature:f989aa0bf67a61c4c83568120117c096ff790f947900b38167c961d238ceb9c6',1795372394552212,1795372394552212);
INSERT INTO "received_events" VALUES('signature:0a80629b6e3b2c9de19cfd624a62e84050d3dfdb15c170c9df29b215832e0b79',1795372394634184,1795372394634184);
INSERT INTO "received_events" VALUES('signature:f1732bcc08b138aee351b9b7c4a86923b62c9dee68ea23408b3dbece419560d8',1795372394705783,1795372394705783);
INSERT INTO "received_events" VALUES('signature:3c702b0ac90d7507f0f1d000a9efd45e5be563a57ee972c68869267c962f7818',1795372394793548,1795372394793548);
INSERT INTO "received_events" VALUES('signature:2f863ec56a8f3401498db311056bed39c8f3d3545c778b7e77ce614ea1be7dfc',1795372397909062,1795372397909062);
INSERT INTO "received_events" VALUES('signature:3f453c75987767cf81d28f5d6855fade4e978f1c36b45c1103b871c0674adc32',1795372398307458,1795372398307458);
INSERT INTO "received_events" VALUES('signature:98e4e26ec9eca0ac004ad86e54c736111144bc2d569cd97c995519bbe7a8febd',1795372398724106,1795372398724106);
CREATE TABLE requests (
	id VARCHAR(32) NOT NULL, 
	flow_key VARCHAR(34) NOT NULL, 
	flow_sid VARCHAR(34) NOT NULL, 
	flow_alias VARCHAR(255), 
	requester_id VARCHAR(64) NOT NULL, 
	requester_name TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	version INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	decided_by_id VARCHAR(64), 
	decided_by_name TEXT, 
	decided_at BIGINT, 
	requested JSON NOT NULL, 
	progress JSON NOT NULL, signature VARCHAR(64), 
	CONSTRAINT pk_requests PRIMARY KEY (id)
);
INSERT INTO "requests" VALUES('ec9eca9211c9b49f','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','applied',3,1795372393947745,4102444800000000,'U0APPROVER','Ada Approver',1795372394041660,'{"change":{"additions":["+15550001"],"removals":[]},"seen":[],"seen_change_id":0,"end_changes":[],"duration_seconds":1800,"ends":{},"reason":"the demo","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}','{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:14.041660Z","click_id":"click:5246c5cb01f7d696"}],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":{"at":"2026-11-22T18:33:14.105624Z","change":{"additions":["+15550001"],"removals":[]},"already":{"additions":[],"removals":[]},"outside":{"additions":[],"removals":[]},"size_before":2,"size_after":3,"ends_at":{"+15550001":"2026-11-22T19:03:14.105624Z"},"previous_ends":{}},"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"aa47836a0c0a"}','e2fc906a5b0e6a1c20d32240b5e93377fbda6d97e49bf3910d2136ceb00a747e');
INSERT INTO "requests" VALUES('feffdd52add83004','FW00000000000000000000000000000002','FW00000000000000000000000000000002','survey','U0ADMIN','Adam Admin','applied',2,1795372394190504,4102444800000000,'U0ADMIN','Adam Admin',1795372394190504,'{"change":{"additions":["+15550009"],"removals":[]},"seen":[],"seen_change_id":0,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"it burns","without_approval":true,"undo_of":null,"current_ends":{},"starts_at":null}','{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":{"at":"2026-11-22T18:33:14.225491Z","change":{"additions":["+15550009"],"removals":[]},"already":{"additions":[],"removals":[]},"outside":{"additions":[],"removals":[]},"size_before":1,"size_after":2,"ends_at":{},"previous_ends":{}},"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"78f303ec8328"}','a84b8ba8cd8ecf00c152b1a18ec245cefb538b93e6056fc85db41bb9c85137ad');
INSERT INTO "requests" VALUES('224934c366f0ca9b','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','scheduled',2,1795372394308604,4102444800000000,'U0APPROVER','Ada Approver',1795372394396589,'{"change":{"additions":["+15550007"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":"2099-11-23T08:00:00Z"}','{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:14.396589Z","click_id":"click:78c5fa14b0dec693"}],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"304794954912"}','1de63f5b730138729ac2fcf9c333f8abfd0f2aa6b3687d02e21fc56dfbb0f2fc');
INSERT INTO "requests" VALUES('a9dfe5acf08b70bb','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','pending',1,1795372394475971,4102444800000000,NULL,NULL,NULL,'{"change":{"additions":["+15550005"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}','{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":""}','b8e67001659845c9d421987e8a37c6489fe0f3ed4c2102d8b2de6cf27279319c');
INSERT INTO "requests" VALUES('0bbce58bd3953350','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','pending',1,1795372394562330,4102444800000000,NULL,NULL,NULL,'{"change":{"additions":["+15550003"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}','{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":""}','618010b3a15b3421f02b1b7c238b2a08420f450b2c818f8ef353d29e48cfa25a');
INSERT INTO "requests" VALUES('ff15d8ce9d7204ea','FW00000000000000000000000000000002','FW00000000000000000000000000000002','survey','U0OPERATOR','Otto Operator','applying',4,1795372394720263,4102444800000000,'U0APPROVER','Ada Approver',1795372394801235,'{"change":{"additions":["+15550006"],"removals":[]},"seen":["ada@example.com","+15550009"],"seen_change_id":2,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}','{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:14.801235Z","click_id":"click:deec908041e5b947"}],"denial_reason":"","failure":"The flow service rejected the request (HTTP 400). It said: “Something went wrong.”","is_unsure":false,"tries":2,"retry_at":"2026-11-22T18:33:18.949438Z","retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"3c702b0ac90d"}','99d9398c91782561f142a5450ca75b78e3b348785c9aa0f6b0d1385e51593349');
INSERT INTO "requests" VALUES('4fc2c7ab9d8f7bd5','FW00000000000000000000000000000002','FW00000000000000000000000000000002','survey','U0OPERATOR','Otto Operator','pending',1,1795372397918506,4102444800000000,NULL,NULL,NULL,'{"change":{"additions":["+15550004"],"removals":[]},"seen":["ada@example.com","+15550009"],"seen_change_id":2,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}','{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":""}','ca91ac8ac42bac54a512888046cb0a05a59249c3ba2c3dd6b8464904d568728f');
INSERT INTO "requests" VALUES('43b4d42171128887','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','applying',3,1795372398315430,4102444800000000,'U0APPROVER','Ada Approver',1795372398737639,'{"change":{"additions":["+15550002"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"a trial","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}','{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:18.737639Z","click_id":"click:4b0dbea7562202a1"}],"denial_reason":"","failure":"The flow service is having problems (HTTP 503). Try again in a few minutes.","is_unsure":false,"tries":1,"retry_at":"2026-11-22T18:33:21.079648Z","retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"98e4e26ec9ec"}','ae64e042d4ce6dbc342929a77dbafbc86e39c4766ae5935eeb4dabd8ab0a5710');
CREATE INDEX ix_audit_entries_subject_position ON audit_entries (subject, position);
CREATE INDEX ix_jobs_due_at ON jobs (due_at);
CREATE INDEX ix_requests_flow_key_created_at ON requests (flow_key, created_at);
CREATE INDEX ix_requests_state_flow_key ON requests (state, flow_key);
CREATE INDEX ix_grants_flow_key_ends_at ON grants (flow_key, ends_at);
CREATE INDEX ix_flow_changes_flow_key_id ON flow_changes (flow_key, id);
CREATE INDEX ix_quota_calls_organization_slot_free_at ON quota_calls (organization, slot_free_at);
CREATE INDEX ix_quota_calls_organization_reserved_at_number ON quota_calls (organization, reserved_at, number);
CREATE INDEX ix_quota_hours_hour_at ON quota_hours (hour_at);
CREATE INDEX ix_incidents_closed_at ON incidents (closed_at);
CREATE INDEX ix_incidents_organization_code ON incidents (organization, code);
CREATE INDEX ix_outbox_messages_key_sent_at ON outbox_messages ("key", sent_at);
CREATE INDEX ix_outbox_messages_sent_at ON outbox_messages (sent_at);
CREATE INDEX ix_home_views_opened_at ON home_views (opened_at);
CREATE INDEX ix_gateway_waits_organization_until ON gateway_waits (organization, until);
CREATE INDEX ix_flow_posts_flow_key_sent_at ON flow_posts (flow_key, sent_at);
CREATE INDEX ix_received_events_received_at ON received_events (received_at);
CREATE INDEX ix_outbox_messages_subject ON outbox_messages (subject);
CREATE INDEX ix_grants_request_id ON grants (request_id);
COMMIT;
