BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0020');
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
INSERT INTO "audit_entries" VALUES(1,1795727890678447,'U0OPERATOR','request.created','cf0e26a3c772b9ba','{"additions": ["+15550001"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "29136f523e12", "starts_at": null, "undo_of": null}','0000000000000000000000000000000000000000000000000000000000000000','eb594df1fbfba7b2f8e540f75ed4534bf7e257367e31c7869bbafb11eae6e92d');
INSERT INTO "audit_entries" VALUES(2,1795727891901179,'U0OPERATOR','request.created','0485109f162cdc71','{"additions": ["+15550002"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "4f0546b1ca8c", "starts_at": "2026-11-27T08:00:00+00:00", "undo_of": null}','eb594df1fbfba7b2f8e540f75ed4534bf7e257367e31c7869bbafb11eae6e92d','4fd08cee0c56b259b7eabb9f115130019f4735ee1b43ccb7c31e9f5958e85270');
INSERT INTO "audit_entries" VALUES(3,1795727891993488,'U0OPERATOR','request.created','9f771e7ae586b26b','{"additions": ["+15550003"], "duration_seconds": 172800, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "89a7343c4d6a", "starts_at": "2026-11-27T08:00:00+00:00", "undo_of": null}','4fd08cee0c56b259b7eabb9f115130019f4735ee1b43ccb7c31e9f5958e85270','2635341b02f4e40e87d93a5ecc57a3402f832ea15e875a50766ca16792f16b2c');
INSERT INTO "audit_entries" VALUES(4,1795727892089795,'U0APPROVER','request.approved','9f771e7ae586b26b','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "7b6eccfd5dd8", "state": "scheduled"}','2635341b02f4e40e87d93a5ecc57a3402f832ea15e875a50766ca16792f16b2c','afe03c9e30b7feb8dbb312fb3767bd9fcc6f0f52bf35c45819602e9a0ad0b0b2');
INSERT INTO "audit_entries" VALUES(5,1795727892223706,'U0OPERATOR','request.created','f719912de1789a25','{"additions": ["+15550004"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "2ce3c60b38cf", "starts_at": "2026-11-27T08:00:00+00:00", "undo_of": null}','afe03c9e30b7feb8dbb312fb3767bd9fcc6f0f52bf35c45819602e9a0ad0b0b2','d5bf2055593e9b398d06615d5ad68330a965229b591bbdd210c47cede108f3d3');
INSERT INTO "audit_entries" VALUES(6,1795727892309755,'U0APPROVER','request.approved','f719912de1789a25','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "5d9debcd8bee", "state": "scheduled"}','d5bf2055593e9b398d06615d5ad68330a965229b591bbdd210c47cede108f3d3','d7079e6175627053212c98a747ad08da3dde88e3d73e18cfbb41aabe0fb4fe4c');
INSERT INTO "audit_entries" VALUES(7,1795727892426514,'U0OPERATOR','request.created','004c5392979927b6','{"additions": ["+15550007"], "duration_seconds": 259200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "61c39a3263f4", "starts_at": null, "undo_of": null}','d7079e6175627053212c98a747ad08da3dde88e3d73e18cfbb41aabe0fb4fe4c','cb40120ec49ff937b146f8617b3ce7d51bca1d4e62517df97f687ffc29eaf793');
INSERT INTO "audit_entries" VALUES(8,1795727892512747,'U0APPROVER','request.approved','004c5392979927b6','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "991cce1dfe94", "state": "applying"}','cb40120ec49ff937b146f8617b3ce7d51bca1d4e62517df97f687ffc29eaf793','c2387f5921841a5cb0a9a15f57240ae61b98096f50dc5ded7f076ecec80da66c');
INSERT INTO "audit_entries" VALUES(9,1795727892581002,'gatehouse','flow.changed','FW00000000000000000000000000000001','{"after": ["+15550100001", "+15550007"], "before": ["+15550100001"], "ended": [], "request_id": "991cce1dfe94", "requests": ["004c5392979927b6"]}','c2387f5921841a5cb0a9a15f57240ae61b98096f50dc5ded7f076ecec80da66c','bcb16a9566b46f9ebae2b4d706a03e956b1b66819ea2f639752d63e3619cce19');
INSERT INTO "audit_entries" VALUES(10,1795727892581002,'gatehouse','request.applied','004c5392979927b6','{"additions": ["+15550007"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "991cce1dfe94"}','bcb16a9566b46f9ebae2b4d706a03e956b1b66819ea2f639752d63e3619cce19','f479f53f4b61390e2d92be8301bc0ded5dc775dd2494a73ef30e5da508318f79');
INSERT INTO "audit_entries" VALUES(11,1795727892700100,'U0OPERATOR','request.created','89b79f3f11f7c5ca','{"additions": ["+15550008"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "c65f5df1565c", "starts_at": null, "undo_of": null}','f479f53f4b61390e2d92be8301bc0ded5dc775dd2494a73ef30e5da508318f79','fbd505238aa6b2b2df685db2224598968bc5bd3732857bfcec6e34e06d095df0');
INSERT INTO "audit_entries" VALUES(12,1795727892788028,'U0APPROVER','request.approved','89b79f3f11f7c5ca','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "2c2e898fd0a4", "state": "applying"}','fbd505238aa6b2b2df685db2224598968bc5bd3732857bfcec6e34e06d095df0','cea4a3165a6b81c2313896e440239ced44683ea870725c2ca0b3363fcc864a15');
INSERT INTO "audit_entries" VALUES(13,1795727892839080,'gatehouse','flow.changed','FW00000000000000000000000000000001','{"after": ["+15550100001", "+15550007", "+15550008"], "before": ["+15550100001", "+15550007"], "ended": [], "request_id": "2c2e898fd0a4", "requests": ["89b79f3f11f7c5ca"]}','cea4a3165a6b81c2313896e440239ced44683ea870725c2ca0b3363fcc864a15','2fa68c2f233de1e5024684a7d39c9d118621e1ab7454ee1ab20817e3c521f466');
INSERT INTO "audit_entries" VALUES(14,1795727892839080,'gatehouse','request.applied','89b79f3f11f7c5ca','{"additions": ["+15550008"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "2c2e898fd0a4"}','2fa68c2f233de1e5024684a7d39c9d118621e1ab7454ee1ab20817e3c521f466','6e6a6b493d41221fed4f7d1b5bdf7f21aaeb486fcf93d36d8ea02a51d7a3d963');
INSERT INTO "audit_entries" VALUES(15,1795727892919397,'U0OPERATOR','preset.saved','demo','{"after": ["+15550100", "+15550101"], "before": [], "request_id": "d1845d56fae0"}','6e6a6b493d41221fed4f7d1b5bdf7f21aaeb486fcf93d36d8ea02a51d7a3d963','dfcf6b7afb3a8f82e4b666c7fafada4ee642d3868e17986fe15cbf2699d3c4ed');
INSERT INTO "audit_entries" VALUES(16,1795727892940178,'U0OPERATOR','request.created','43c0ff2b059b882c','{"additions": ["+15550005"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "test 5", "removals": [], "request_id": "3e845821c286", "starts_at": null, "undo_of": null}','dfcf6b7afb3a8f82e4b666c7fafada4ee642d3868e17986fe15cbf2699d3c4ed','c89cf2fabad12d6cd5ead2143c9e57bf807a57bc2d1b2238efbe331c6ec2f95c');
INSERT INTO "audit_entries" VALUES(17,1795727893027524,'U0APPROVER','request.approved','43c0ff2b059b882c','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "6866e55bf84c", "state": "applying"}','c89cf2fabad12d6cd5ead2143c9e57bf807a57bc2d1b2238efbe331c6ec2f95c','753fdfa71711b66df825ed7eba04af875fd108ce95f178a459fc66feedc08d90');
INSERT INTO "audit_entries" VALUES(18,1795727893097249,'gatehouse','request.failed','43c0ff2b059b882c','{"flow": "FW00000000000000000000000000000002", "reason": "No.", "request_id": "6866e55bf84c"}','753fdfa71711b66df825ed7eba04af875fd108ce95f178a459fc66feedc08d90','4b3aa20727a9458d62b6c661b716bc04233e9996ae47d605eb566d42d639b40c');
INSERT INTO "audit_entries" VALUES(19,1795727893230064,'U0OPERATOR','request.created','6a838175f26c9d48','{"additions": ["+15550009"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "test 9", "removals": [], "request_id": "868fcbfb08a7", "starts_at": null, "undo_of": null}','4b3aa20727a9458d62b6c661b716bc04233e9996ae47d605eb566d42d639b40c','87d4110a3973b8d775ee5ac210f1c763738b623747ed6cc55b4fd0437ae02f28');
INSERT INTO "audit_entries" VALUES(20,1795727893315154,'U0APPROVER','request.approved','6a838175f26c9d48','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "384c5bbd6993", "state": "applying"}','87d4110a3973b8d775ee5ac210f1c763738b623747ed6cc55b4fd0437ae02f28','f0f32021212e640df1a666e97b6ec8791791167c151ab665cce9deae71ae5c48');
INSERT INTO "audit_entries" VALUES(21,1795727893374807,'gatehouse','request.failed','6a838175f26c9d48','{"flow": "FW00000000000000000000000000000002", "reason": "No.", "request_id": "384c5bbd6993"}','f0f32021212e640df1a666e97b6ec8791791167c151ab665cce9deae71ae5c48','789da39a9e17381c488233a4598d556feef571d01f2a2ada2afc2cf76c124fd0');
INSERT INTO "audit_entries" VALUES(22,1795727893486084,'U0OPERATOR','request.created','d415b3cec2e0edb5','{"additions": ["+15550006", "+15550016"], "duration_seconds": 7776000, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "", "removals": [], "request_id": "369c1086e6e4", "starts_at": null, "undo_of": null}','789da39a9e17381c488233a4598d556feef571d01f2a2ada2afc2cf76c124fd0','9794050ab18343935647d722ecd990e32fa2827fa3b35d41a7db9fdea4abbba5');
INSERT INTO "audit_entries" VALUES(23,1795727893571048,'U0APPROVER','request.approved','d415b3cec2e0edb5','{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "fdc23ef929f2", "state": "applying"}','9794050ab18343935647d722ecd990e32fa2827fa3b35d41a7db9fdea4abbba5','6ddbdda0a900c72989ba97a8311a3349dd7a3713e9c8cd781eb414cbb936dbf5');
INSERT INTO "audit_entries" VALUES(24,1795727893633912,'gatehouse','flow.changed','FW00000000000000000000000000000002','{"after": ["+15550006"], "before": [], "ended": [], "request_id": "fdc23ef929f2", "requests": ["d415b3cec2e0edb5"]}','6ddbdda0a900c72989ba97a8311a3349dd7a3713e9c8cd781eb414cbb936dbf5','34cab6ea3f92a98562f699406b15957ea17b936c39b49e9dd27ee3ed28c1b616');
INSERT INTO "audit_entries" VALUES(25,1795727893633912,'gatehouse','request.applied_in_part','d415b3cec2e0edb5','{"additions": ["+15550006"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "fdc23ef929f2"}','34cab6ea3f92a98562f699406b15957ea17b936c39b49e9dd27ee3ed28c1b616','3988b8784e6825f6bf4ab44c8a21bc29dde465989a33ca232cb9b4a57f44b792');
INSERT INTO "audit_entries" VALUES(26,1795727897993405,'gatehouse','request.failed','d415b3cec2e0edb5','{"flow": "FW00000000000000000000000000000002", "reason": "The flow service stored a different list from the one I sent. Please check it.", "request_id": "fdc23ef929f2"}','3988b8784e6825f6bf4ab44c8a21bc29dde465989a33ca232cb9b4a57f44b792','e6b067b5d9af7644c3ca18b2fe521d2f4df927812c215de53c03e554ee0bce05');
CREATE TABLE audit_head (
	id INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_audit_head PRIMARY KEY (id)
);
INSERT INTO "audit_head" VALUES(1,26,'e6b067b5d9af7644c3ca18b2fe521d2f4df927812c215de53c03e554ee0bce05');
CREATE TABLE cards (
	"key" VARCHAR(255) NOT NULL, 
	channel_id VARCHAR(64) NOT NULL, 
	message_ts VARCHAR(32) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	sent_at BIGINT NOT NULL, 
	CONSTRAINT pk_cards PRIMARY KEY ("key")
);
INSERT INTO "cards" VALUES('request:cf0e26a3c772b9ba','C0APPROVALS','1795727890.829288','209b3834f70cc05f50afb0122e44ccc37071c89a1b3a5b7c1aac923e559c4fc7',1795727890831431);
INSERT INTO "cards" VALUES('request:0485109f162cdc71','C0APPROVALS','1795727890.937812','40eee82bac86aebd78baf4132e6f8fda697d5427cd09a96ce8aba665030e4c56',1795727891939725);
INSERT INTO "cards" VALUES('request:9f771e7ae586b26b','C0APPROVALS','1795727891.032552','77d20060fc129fabad77ba6352eff966f0188892085cfd049b209203be818153',1795727892200584);
INSERT INTO "cards" VALUES('request:f719912de1789a25','C0APPROVALS','1795727891.253042','11c42eda830b9f774293ef6be81c232b0ca67e20112973dfa00eafb9256c075a',1795727892399121);
INSERT INTO "cards" VALUES('request:004c5392979927b6','C0APPROVALS','1795727891.461134','be38082e4c25213d08952e342c8f6b3afbfd16bbe688759cac49bd765b8bbf1d',1795727892681194);
INSERT INTO "cards" VALUES('request:89b79f3f11f7c5ca','C0APPROVALS','1795727891.731880','e674c6ea421f6ac50e930f6c512409a7f287f694a36c8a9f46dffaa20a6ebe60',1795727892910601);
INSERT INTO "cards" VALUES('request:43c0ff2b059b882c','C0APPROVALS','1795727891.965774','c7f86d650d8370e3abfd20fb3c5a725da2a3fca2d429de154b03469a7b91a074',1795727893210465);
INSERT INTO "cards" VALUES('testusers.failure:43c0ff2b059b882c:0','C0APPROVALS','1795727892.195204','2895bde462f5b297beb555288a98c74e0aedf509abcd19eaa3cfe2a29fed6fee',1795727893202415);
INSERT INTO "cards" VALUES('request:6a838175f26c9d48','C0APPROVALS','1795727892.260576','e5e3ca47baa9034d8b7ff6d2fd1613f735d67b9b3f2f081d4addb4bd4b71671d',1795727893467129);
INSERT INTO "cards" VALUES('testusers.failure:6a838175f26c9d48:0','C0APPROVALS','1795727892.451151','8e948a940c988500071d54e73e32ed46dce18fc62d38960acbfa6f44d3cd9d55',1795727893459908);
INSERT INTO "cards" VALUES('request:d415b3cec2e0edb5','C0APPROVALS','1795727892.517361','eeebdeaa6919831abd29269ced273b4f7e38fd4a1d54b78217b630558b5e419a',1795727898099080);
INSERT INTO "cards" VALUES('testusers.failure:d415b3cec2e0edb5:0','C0APPROVALS','1795727893.130727','7bac2d84bf044da43af7c6f5e4085c49305a539042ff59e2aaea90758e2e00d7',1795727898168987);
INSERT INTO "cards" VALUES('incident:1','C0ALERTS','1795727893.390785','44b5a54b410d98d36b698c84c7bb45ce523f14ea294163dea6e40d385d5be894',1795727898392803);
CREATE TABLE flow_changes (
	id INTEGER NOT NULL, 
	flow_key VARCHAR(34) NOT NULL, 
	at BIGINT NOT NULL, 
	content JSON NOT NULL, 
	CONSTRAINT pk_flow_changes PRIMARY KEY (id)
);
INSERT INTO "flow_changes" VALUES(1,'FW00000000000000000000000000000001',1795727892581002,'{"additions": ["+15550007"], "removals": [], "request_ids": ["004c5392979927b6"], "ended": []}');
INSERT INTO "flow_changes" VALUES(2,'FW00000000000000000000000000000001',1795727892839080,'{"additions": ["+15550008"], "removals": [], "request_ids": ["89b79f3f11f7c5ca"], "ended": []}');
INSERT INTO "flow_changes" VALUES(3,'FW00000000000000000000000000000002',1795727893633912,'{"additions": ["+15550006"], "removals": [], "request_ids": ["d415b3cec2e0edb5"], "ended": []}');
CREATE TABLE flow_posts (
	id VARCHAR(32) NOT NULL, 
	flow_key VARCHAR(34) NOT NULL, 
	sent_at BIGINT NOT NULL, 
	content JSON NOT NULL, 
	CONSTRAINT pk_flow_posts PRIMARY KEY (id)
);
CREATE TABLE grants (
	flow_key VARCHAR(34) NOT NULL, 
	identity TEXT NOT NULL, 
	flow_sid VARCHAR(34) NOT NULL, 
	request_id VARCHAR(32) NOT NULL, 
	granted_by JSON NOT NULL, 
	approved_by JSON NOT NULL, 
	granted_at BIGINT NOT NULL, 
	ends_at BIGINT, 
	CONSTRAINT pk_grants PRIMARY KEY (flow_key, identity)
);
INSERT INTO "grants" VALUES('FW00000000000000000000000000000001','"+15550007"','FW00000000000000000000000000000001','004c5392979927b6','{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}','[{"slack_user_id": "U0APPROVER", "name": "Ada Approver"}]',1795727892581002,1795727892581002);
INSERT INTO "grants" VALUES('FW00000000000000000000000000000001','"+15550008"','FW00000000000000000000000000000001','89b79f3f11f7c5ca','{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}','[{"slack_user_id": "U0APPROVER", "name": "Ada Approver"}]',1795727892839080,4081355940000000);
INSERT INTO "grants" VALUES('FW00000000000000000000000000000002','"+15550006"','FW00000000000000000000000000000002','d415b3cec2e0edb5','{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}','[{"slack_user_id": "U0APPROVER", "name": "Ada Approver"}]',1795727893633912,4081355940000000);
CREATE TABLE home_views (
	slack_user_id VARCHAR(64) NOT NULL, 
	opened_at BIGINT NOT NULL, 
	published_at BIGINT, 
	hash VARCHAR(255), 
	fingerprint VARCHAR(64) NOT NULL, 
	unsure_until BIGINT, 
	CONSTRAINT pk_home_views PRIMARY KEY (slack_user_id)
);
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
INSERT INTO "incidents" VALUES(1,9,44,1795727898337275,NULL,1,'{"own": {"minute": [1, 100], "day": [1, 1000], "concurrent": [1, 5]}, "words": "Your organization has been blocked for some time because it sent more than 100 requests in a minute.", "sent_code": 44, "is_foreign": true, "may_be_plan": false, "is_lowered": true, "clients": {}, "ended_because": ""}');
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
	last_error TEXT, 
	CONSTRAINT pk_jobs PRIMARY KEY ("key")
);
INSERT INTO "jobs" VALUES('retain','retain','retain','{}',1795814290626582,1,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('quota_tidy','quota_tidy','quota_tidy','{"boot": "7e281de8-4e59-40c0-afa4-b020ab2468e9", "offset": 1795724887.6596563}',1795731490626582,1,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('timer:cf0e26a3c772b9ba','testusers.timer','cf0e26a3c772b9ba','{}',1795727950678447,1,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('timer:0485109f162cdc71','testusers.timer','0485109f162cdc71','{}',1795727951901179,1,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('timer:9f771e7ae586b26b','testusers.timer','9f771e7ae586b26b','{}',1795766400000000,2,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('timer:f719912de1789a25','testusers.timer','f719912de1789a25','{}',1795766400000000,2,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('timer:004c5392979927b6','testusers.timer','004c5392979927b6','{}',1795983492581002,2,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('apply:FW00000000000000000000000000000001','testusers.apply','FW00000000000000000000000000000001','{}',1795727898000000,2,1,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('timer:89b79f3f11f7c5ca','testusers.timer','89b79f3f11f7c5ca','{}',1809205140000000,2,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('timer:d415b3cec2e0edb5','testusers.timer','d415b3cec2e0edb5','{}',1803500293633912,2,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('apply:FW00000000000000000000000000000002','testusers.apply','FW00000000000000000000000000000002','{}',1795727894424014,2,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('probe:9','probe','eu/20077314','{}',1795727958337275,1,0,NULL,NULL,NULL);
CREATE TABLE listings (
	data_center VARCHAR(16) NOT NULL, 
	fetched_at BIGINT NOT NULL, 
	organizations JSON NOT NULL, 
	digest VARCHAR(64) DEFAULT '' NOT NULL, 
	CONSTRAINT pk_listings PRIMARY KEY (data_center)
);
INSERT INTO "listings" VALUES('in',1795727898293503,'[{"organization_id": "60018842", "name": "Sundaram Textiles", "contact_name": "Priya Nair", "email": "priya@60018842.example", "is_default_org": true, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2015-08-12", "time_zone": "IST", "is_org_active": true, "currency_id": "460000000000103", "currency_code": "INR", "currency_symbol": "\u20b9", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "60020957", "name": "Ganges Spice Exports", "contact_name": "Ravi Kumar", "email": "ravi@60020957.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2020-12-01", "time_zone": "IST", "is_org_active": true, "currency_id": "460000000000103", "currency_code": "INR", "currency_symbol": "\u20b9", "currency_format": "###,##0.00", "price_precision": 2}]','');
INSERT INTO "listings" VALUES('eu',1795727898300198,'[{"organization_id": "20077314", "name": "M\u00fcller & S\u00f6hne <Berlin>", "contact_name": "J\u00f6rg M\u00fcller", "email": "joerg@20077314.example", "is_default_org": true, "language_code": "de", "fiscal_year_start_month": 0, "account_created_date": "2017-01-09", "time_zone": "CET", "is_org_active": true, "currency_id": "460000000000099", "currency_code": "EUR", "currency_symbol": "\u20ac", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "20077315", "name": "Northwind Traders", "contact_name": "Hanna Moos", "email": "hanna@20077315.example", "is_default_org": false, "language_code": "de", "fiscal_year_start_month": 0, "account_created_date": "2018-10-22", "time_zone": "CET", "is_org_active": true, "currency_id": "460000000000099", "currency_code": "EUR", "currency_symbol": "\u20ac", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "20145880", "name": "Caf\u00e9 Zo\u00eb", "contact_name": "Zo\u00eb Laurent", "email": "zoe@20145880.example", "is_default_org": false, "language_code": "de", "fiscal_year_start_month": 0, "account_created_date": "2021-03-15", "time_zone": "CET", "is_org_active": true, "currency_id": "460000000000099", "currency_code": "EUR", "currency_symbol": "\u20ac", "currency_format": "###,##0.00", "price_precision": 2}]','');
INSERT INTO "listings" VALUES('com',1795727898303550,'[{"organization_id": "10234695", "name": "Northwind Traders", "contact_name": "Maria Anders", "email": "maria@10234695.example", "is_default_org": true, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2016-02-18", "time_zone": "PST", "is_org_active": true, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "10407630", "name": "Tailspin Toys", "contact_name": "John Smith", "email": "john@10407630.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2019-07-03", "time_zone": "PST", "is_org_active": true, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "10988211", "name": "\ud83c\udf35 Cactus & Co", "contact_name": "Ana Ruiz", "email": "ana@10988211.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2023-11-27", "time_zone": "PST", "is_org_active": true, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "10511902", "name": "Wingtip Archive", "contact_name": "Lee Gold", "email": "lee@10511902.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2014-05-30", "time_zone": "PST", "is_org_active": false, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}]','');
INSERT INTO "listings" VALUES('com.au',1795727898306450,'[{"organization_id": "70003391", "name": "Southern Cross Surfboards", "contact_name": "Mia O''Brien", "email": "mia@70003391.example", "is_default_org": true, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2018-04-04", "time_zone": "AEST", "is_org_active": true, "currency_id": "460000000000105", "currency_code": "AUD", "currency_symbol": "A$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "70003977", "name": "Outback *Tools* _Hire_", "contact_name": "Jack Walsh", "email": "jack@70003977.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2013-09-19", "time_zone": "AEST", "is_org_active": false, "currency_id": "460000000000105", "currency_code": "AUD", "currency_symbol": "A$", "currency_format": "###,##0.00", "price_precision": 2}]','');
INSERT INTO "listings" VALUES('jp',1795727898310203,'[{"organization_id": "80004410", "name": "\u685c\u4e95\u88fd\u4f5c\u6240", "contact_name": "\u685c\u4e95 \u5065", "email": "ken@80004410.example", "is_default_org": true, "language_code": "ja", "fiscal_year_start_month": 0, "account_created_date": "2019-02-28", "time_zone": "JST", "is_org_active": true, "currency_id": "460000000000107", "currency_code": "JPY", "currency_symbol": "\u00a5", "currency_format": "###,##0.00", "price_precision": 0}, {"organization_id": "80004655", "name": "Kyoto Paper Works", "contact_name": "Yui Tanaka", "email": "yui@80004655.example", "is_default_org": false, "language_code": "ja", "fiscal_year_start_month": 0, "account_created_date": "2022-06-16", "time_zone": "JST", "is_org_active": true, "currency_id": "460000000000107", "currency_code": "JPY", "currency_symbol": "\u00a5", "currency_format": "###,##0.00", "price_precision": 0}]','');
INSERT INTO "listings" VALUES('ca',1795727898313318,'[{"organization_id": "90001276", "name": "Maple <Leaf> Outdoors", "contact_name": "Chlo\u00e9 Tremblay", "email": "chloe@90001276.example", "is_default_org": true, "language_code": "fr", "fiscal_year_start_month": 0, "account_created_date": "2020-01-31", "time_zone": "EST", "is_org_active": true, "currency_id": "460000000000109", "currency_code": "CAD", "currency_symbol": "CA$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "90001301", "name": "Hudson & Daughters", "contact_name": "Emma Roy", "email": "emma@90001301.example", "is_default_org": false, "language_code": "fr", "fiscal_year_start_month": 0, "account_created_date": "2021-08-25", "time_zone": "EST", "is_org_active": true, "currency_id": "460000000000109", "currency_code": "CAD", "currency_symbol": "CA$", "currency_format": "###,##0.00", "price_precision": 2}]','');
INSERT INTO "listings" VALUES('com.cn',1795727898316631,'[{"organization_id": "50006120", "name": "\u4e0a\u6d77\u6668\u5149\u8d38\u6613\u6709\u9650\u516c\u53f8", "contact_name": "\u738b \u82b3", "email": "fang@50006120.example", "is_default_org": true, "language_code": "zh", "fiscal_year_start_month": 0, "account_created_date": "2018-11-11", "time_zone": "CST", "is_org_active": true, "currency_id": "460000000000111", "currency_code": "CNY", "currency_symbol": "CN\u00a5", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "50006544", "name": "Lotus Electronics", "contact_name": "Li Wei", "email": "wei@50006544.example", "is_default_org": false, "language_code": "zh", "fiscal_year_start_month": 0, "account_created_date": "2012-03-07", "time_zone": "CST", "is_org_active": false, "currency_id": "460000000000111", "currency_code": "CNY", "currency_symbol": "CN\u00a5", "currency_format": "###,##0.00", "price_precision": 2}]','');
INSERT INTO "listings" VALUES('sa',1795727898319885,'[{"organization_id": "30002218", "name": "\u0634\u0631\u0643\u0629 \u0627\u0644\u0646\u062e\u064a\u0644 \u0627\u0644\u062a\u062c\u0627\u0631\u064a\u0629", "contact_name": "\u0646\u0648\u0631\u0629 \u0627\u0644\u0639\u062a\u064a\u0628\u064a", "email": "noura@30002218.example", "is_default_org": true, "language_code": "ar", "fiscal_year_start_month": 0, "account_created_date": "2021-05-05", "time_zone": "AST", "is_org_active": true, "currency_id": "460000000000113", "currency_code": "SAR", "currency_symbol": "\u0631.\u0633", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "30002290", "name": "Red Sea Logistics", "contact_name": "Omar Saleh", "email": "omar@30002290.example", "is_default_org": false, "language_code": "ar", "fiscal_year_start_month": 0, "account_created_date": "2024-02-14", "time_zone": "AST", "is_org_active": true, "currency_id": "460000000000113", "currency_code": "SAR", "currency_symbol": "\u0631.\u0633", "currency_format": "###,##0.00", "price_precision": 2}]','');
CREATE TABLE outbox_messages (
	id INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	subject VARCHAR(255) NOT NULL, 
	payload JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	tries INTEGER NOT NULL, 
	sent_at BIGINT, 
	failure TEXT, 
	CONSTRAINT pk_outbox_messages PRIMARY KEY (id)
);
INSERT INTO "outbox_messages" VALUES(1,'request:cf0e26a3c772b9ba','testusers.card','cf0e26a3c772b9ba','{}',1795727890678447,1,1795727890831431,NULL);
INSERT INTO "outbox_messages" VALUES(2,'request:0485109f162cdc71','testusers.card','0485109f162cdc71','{}',1795727891901179,1,1795727891939725,NULL);
INSERT INTO "outbox_messages" VALUES(3,'request:9f771e7ae586b26b','testusers.card','9f771e7ae586b26b','{}',1795727891993488,1,1795727892034512,NULL);
INSERT INTO "outbox_messages" VALUES(4,'request:9f771e7ae586b26b','testusers.card','9f771e7ae586b26b','{}',1795727892089795,0,1795727892200584,NULL);
INSERT INTO "outbox_messages" VALUES(5,'requester:9f771e7ae586b26b','testusers.outcome','9f771e7ae586b26b','{"event": "scheduled"}',1795727892089795,0,1795727892197716,NULL);
INSERT INTO "outbox_messages" VALUES(6,'request:f719912de1789a25','testusers.card','f719912de1789a25','{}',1795727892223706,1,1795727892254387,NULL);
INSERT INTO "outbox_messages" VALUES(7,'request:f719912de1789a25','testusers.card','f719912de1789a25','{}',1795727892309755,0,1795727892399121,NULL);
INSERT INTO "outbox_messages" VALUES(8,'requester:f719912de1789a25','testusers.outcome','f719912de1789a25','{"event": "scheduled"}',1795727892309755,0,1795727892377717,NULL);
INSERT INTO "outbox_messages" VALUES(9,'request:004c5392979927b6','testusers.card','004c5392979927b6','{}',1795727892426514,1,1795727892464457,NULL);
INSERT INTO "outbox_messages" VALUES(10,'request:004c5392979927b6','testusers.card','004c5392979927b6','{}',1795727892512747,0,1795727892610326,NULL);
INSERT INTO "outbox_messages" VALUES(11,'request:004c5392979927b6','testusers.card','004c5392979927b6','{}',1795727892581002,0,1795727892681194,NULL);
INSERT INTO "outbox_messages" VALUES(12,'requester:004c5392979927b6','testusers.outcome','004c5392979927b6','{"event": "applied"}',1795727892581002,0,1795727892657764,NULL);
INSERT INTO "outbox_messages" VALUES(13,'request:89b79f3f11f7c5ca','testusers.card','89b79f3f11f7c5ca','{}',1795727892700100,1,1795727892733534,NULL);
INSERT INTO "outbox_messages" VALUES(14,'request:89b79f3f11f7c5ca','testusers.card','89b79f3f11f7c5ca','{}',1795727892788028,0,1795727892859930,NULL);
INSERT INTO "outbox_messages" VALUES(15,'request:89b79f3f11f7c5ca','testusers.card','89b79f3f11f7c5ca','{}',1795727892839080,0,1795727892910601,NULL);
INSERT INTO "outbox_messages" VALUES(16,'requester:89b79f3f11f7c5ca','testusers.outcome','89b79f3f11f7c5ca','{"event": "applied"}',1795727892839080,0,1795727892893048,NULL);
INSERT INTO "outbox_messages" VALUES(17,'request:43c0ff2b059b882c','testusers.card','43c0ff2b059b882c','{}',1795727892940178,1,1795727892967949,NULL);
INSERT INTO "outbox_messages" VALUES(18,'request:43c0ff2b059b882c','testusers.card','43c0ff2b059b882c','{}',1795727893027524,0,1795727893121094,NULL);
INSERT INTO "outbox_messages" VALUES(19,'request:43c0ff2b059b882c','testusers.card','43c0ff2b059b882c','{}',1795727893097249,0,1795727893210465,NULL);
INSERT INTO "outbox_messages" VALUES(20,'requester:43c0ff2b059b882c','testusers.outcome','43c0ff2b059b882c','{"event": "failed", "reason": "No."}',1795727893097249,0,1795727893179344,NULL);
INSERT INTO "outbox_messages" VALUES(21,'testusers.failure:43c0ff2b059b882c:0','testusers.failure','43c0ff2b059b882c','{}',1795727893097249,1,1795727893202415,NULL);
INSERT INTO "outbox_messages" VALUES(22,'request:6a838175f26c9d48','testusers.card','6a838175f26c9d48','{}',1795727893230064,1,1795727893262115,NULL);
INSERT INTO "outbox_messages" VALUES(23,'request:6a838175f26c9d48','testusers.card','6a838175f26c9d48','{}',1795727893315154,0,1795727893398479,NULL);
INSERT INTO "outbox_messages" VALUES(24,'request:6a838175f26c9d48','testusers.card','6a838175f26c9d48','{}',1795727893374807,0,1795727893467129,NULL);
INSERT INTO "outbox_messages" VALUES(25,'requester:6a838175f26c9d48','testusers.outcome','6a838175f26c9d48','{"event": "failed", "reason": "No."}',1795727893374807,0,1795727893438834,NULL);
INSERT INTO "outbox_messages" VALUES(26,'testusers.failure:6a838175f26c9d48:0','testusers.failure','6a838175f26c9d48','{}',1795727893374807,1,1795727893459908,NULL);
INSERT INTO "outbox_messages" VALUES(27,'request:d415b3cec2e0edb5','testusers.card','d415b3cec2e0edb5','{}',1795727893486084,1,1795727893518969,NULL);
INSERT INTO "outbox_messages" VALUES(28,'request:d415b3cec2e0edb5','testusers.card','d415b3cec2e0edb5','{}',1795727893571048,0,1795727893655420,NULL);
INSERT INTO "outbox_messages" VALUES(29,'request:d415b3cec2e0edb5','testusers.card','d415b3cec2e0edb5','{}',1795727893633912,0,1795727893693729,NULL);
INSERT INTO "outbox_messages" VALUES(30,'request:d415b3cec2e0edb5','testusers.card','d415b3cec2e0edb5','{}',1795727893658644,0,1795727893719270,NULL);
INSERT INTO "outbox_messages" VALUES(31,'request:d415b3cec2e0edb5','testusers.card','d415b3cec2e0edb5','{}',1795727894790524,0,1795727894834540,NULL);
INSERT INTO "outbox_messages" VALUES(32,'request:d415b3cec2e0edb5','testusers.card','d415b3cec2e0edb5','{}',1795727897993405,0,1795727898099080,NULL);
INSERT INTO "outbox_messages" VALUES(33,'requester:d415b3cec2e0edb5','testusers.outcome','d415b3cec2e0edb5','{"event": "failed", "reason": "The flow service stored a different list from the one I sent. Please check it."}',1795727897993405,0,1795727898096345,NULL);
INSERT INTO "outbox_messages" VALUES(34,'testusers.failure:d415b3cec2e0edb5:0','testusers.failure','d415b3cec2e0edb5','{}',1795727897993405,1,1795727898168987,NULL);
INSERT INTO "outbox_messages" VALUES(35,'incident:1','incident_card','1','{}',1795727898361225,1,1795727898392803,NULL);
CREATE TABLE presets (
	name VARCHAR(40) NOT NULL, 
	identities JSON NOT NULL, 
	saved_by JSON NOT NULL, 
	saved_at BIGINT NOT NULL, 
	CONSTRAINT pk_presets PRIMARY KEY (name)
);
INSERT INTO "presets" VALUES('demo','["+15550100", "+15550101"]','{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}',1795727892919397);
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
INSERT INTO "quota_calls" VALUES(1,1,1795727898157020,1795727958223922,1795727898250221,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(2,1,1795727898178046,1795727958243520,1795727898272218,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(3,1,1795727898189367,1795727958253592,1795727898275121,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(4,1,1795727898200024,1795727958263194,1795727898277896,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(5,1,1795727898210747,1795727958273092,1795727898280860,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(6,1,1795727898223636,1795727958285690,1795727898283621,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(7,1,1795727898234897,1795727958295083,1795727898286433,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(8,1,1795727898245384,1795727958311008,1795727898289273,'list','U0OPERATOR');
INSERT INTO "quota_calls" VALUES(9,1,1795727898332299,1795727958389195,1795727898363749,'check','U0OPERATOR');
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
	watched_at BIGINT NOT NULL, 
	muted_by TEXT, 
	lowered_concurrent INTEGER, 
	lowered_until BIGINT, 
	lowered_minute INTEGER, 
	lowered_minute_until BIGINT, 
	CONSTRAINT pk_quota_organizations PRIMARY KEY (id), 
	CONSTRAINT uq_quota_organizations_data_center_organization_id UNIQUE (data_center, organization_id)
);
INSERT INTO "quota_organizations" VALUES(1,'in','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(2,'eu','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(3,'com','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(4,'com.au','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(5,'jp','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(6,'ca','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(7,'com.cn','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(8,'sa','',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "quota_organizations" VALUES(9,'eu','20077314',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"code": 44, "since": 1795727898.3372746, "until": 1795727958.3372746, "failed_tries": 0}]',0,0,0,NULL,NULL,NULL,4,1795731498337274);
CREATE TABLE received_events (
	event_id VARCHAR(255) NOT NULL, 
	received_at BIGINT NOT NULL, 
	answered_at BIGINT, 
	CONSTRAINT pk_received_events PRIMARY KEY (event_id)
);
INSERT INTO "received_events" VALUES('signature:29136f523e12df9eca959a2069c7fd52a25a3c2aa08515a0a77121b4a14d8e6d',1795727890664101,1795727890664101);
INSERT INTO "received_events" VALUES('signature:4f0546b1ca8cfcb441e177b6b96b750ff46d53e21f0991fce4a6a0d1ca284370',1795727891884821,1795727891884821);
INSERT INTO "received_events" VALUES('signature:89a7343c4d6a4719ca87c28fc343c5f3067baece94e09b89a5d72fe32aaefe9b',1795727891979184,1795727891979184);
INSERT INTO "received_events" VALUES('signature:7b6eccfd5dd890786fca1b6e2c73ff9c9f7fd9c6b5ed0dfd21b8e6fdc4043600',1795727892073691,1795727892073691);
INSERT INTO "received_events" VALUES('signature:2ce3c60b38cf2fc5f738f3b013fac95c164915f2cbe1cd6b45fa0ace43e5491a',1795727892205979,1795727892205979);
INSERT INTO "received_events" VALUES('signature:5d9debcd8bee33226b5e4f8471e008df0f52706e22136a6bd601d17073ade931',1795727892298116,1795727892298116);
INSERT INTO "received_events" VALUES('signature:61c39a3263f43c88881bf9478ee681163780b16a4a06229eb594e21c1295b75f',1795727892404246,1795727892404246);
INSERT INTO "received_events" VALUES('signature:991cce1dfe94b9007ad5a5ecb2b06979886a9610b36284e6722ac2549af4c269',1795727892503030,1795727892503030);
INSERT INTO "received_events" VALUES('signature:c65f5df1565c7a6e49e29930a8ba9e438b7c370ffc5a6cd0cfce5150ead68558',1795727892685121,1795727892685121);
INSERT INTO "received_events" VALUES('signature:2c2e898fd0a404d153b5dc0244dd852d464fc264618ecbc08ed4ddb2536df73e',1795727892776729,1795727892776729);
INSERT INTO "received_events" VALUES('signature:d1845d56fae0b4f3509a1698bf032414525f824206478ce8bee7a9242f772e8f',1795727892913880,1795727892913880);
INSERT INTO "received_events" VALUES('signature:3e845821c2868b3fb47a39e4a7e72d138645c539f9e176294e08971992c70284',1795727892929037,1795727892929037);
INSERT INTO "received_events" VALUES('signature:6866e55bf84cdf14311976535ab0497be2785b09139557abc51091ce6b7a6b5e',1795727893014221,1795727893014221);
INSERT INTO "received_events" VALUES('signature:868fcbfb08a72573a7a49c2c73de77c136bfc740b8d7ac968bfdea456bd9b3c6',1795727893214319,1795727893214319);
INSERT INTO "received_events" VALUES('signature:384c5bbd6993bce3a2be079c8e10427e80a8854eeae834298dc462cf76cec357',1795727893304686,1795727893304686);
INSERT INTO "received_events" VALUES('signature:369c1086e6e413d1c6e6ccc70998de91ad7f3ea11b0fa488705bd3dd79d6b614',1795727893470870,1795727893470870);
INSERT INTO "received_events" VALUES('signature:fdc23ef929f22563112bbc0629a8e5b457e950ffaaf56710c80b382ece4f8925',1795727893559522,1795727893559522);
INSERT INTO "received_events" VALUES('signature:ce0d5ab43b9491da9c2e75efa0a0ba7a5ac2e9423c90e5984e3ac6cb0f759766',1795727898102975,1795727898102975);
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
	progress JSON NOT NULL, 
	CONSTRAINT pk_requests PRIMARY KEY (id)
);
INSERT INTO "requests" VALUES('cf0e26a3c772b9ba','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','pending',2,1795727890678447,4083955200000000,NULL,NULL,NULL,'{"change": {"additions": ["+15550001"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}','{"approvals": [], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('0485109f162cdc71','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','pending',2,1795727891901179,4083955200000000,NULL,NULL,NULL,'{"change": {"additions": ["+15550002"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2099-01-05T09:00:00Z", "shown_at": null}','{"approvals": [], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('9f771e7ae586b26b','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','scheduled',3,1795727891993488,4083955200000000,'U0APPROVER','Ada Approver',1795727892089795,'{"change": {"additions": ["+15550003"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 172800, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2099-01-05T09:00:00Z", "shown_at": null}','{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:12.089795Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "7b6eccfd5dd8", "news": [], "rung": ["remind"], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('f719912de1789a25','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','scheduled',3,1795727892223706,4083955200000000,'U0APPROVER','Ada Approver',1795727892309755,'{"change": {"additions": ["+15550004"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2026-01-05T09:00:00Z", "shown_at": null}','{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:12.309755Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "5d9debcd8bee", "news": [], "rung": ["remind"], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('004c5392979927b6','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','applied',4,1795727892426514,1795814292426514,'U0APPROVER','Ada Approver',1795727892512747,'{"change": {"additions": ["+15550007"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 259200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}','{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:12.512747Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": {"at": "2026-11-26T21:18:12.581002Z", "change": {"additions": ["+15550007"], "removals": []}, "already": {"additions": [], "removals": []}, "outside": {"additions": [], "removals": []}, "size_before": 1, "size_after": 2, "ends_at": {"+15550007": "2026-11-29T21:18:12.581002Z"}, "previous_ends": {}}, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "991cce1dfe94", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('89b79f3f11f7c5ca','FW00000000000000000000000000000001','FW00000000000000000000000000000001','welcome','U0OPERATOR','Otto Operator','applied',4,1795727892700100,1795814292700100,'U0APPROVER','Ada Approver',1795727892788028,'{"change": {"additions": ["+15550008"], "removals": []}, "seen": [], "seen_change_id": 1, "end_changes": [], "duration_seconds": null, "ends": {"+15550008": "2099-05-01T21:59:00Z"}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}','{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:12.788028Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": {"at": "2026-11-26T21:18:12.839080Z", "change": {"additions": ["+15550008"], "removals": []}, "already": {"additions": [], "removals": []}, "outside": {"additions": [], "removals": []}, "size_before": 2, "size_after": 3, "ends_at": {"+15550008": "2099-05-01T21:59:00Z"}, "previous_ends": {}}, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "2c2e898fd0a4", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('43c0ff2b059b882c','FW00000000000000000000000000000002','FW00000000000000000000000000000002','survey','U0OPERATOR','Otto Operator','failed',4,1795727892940178,1795814292940178,'U0APPROVER','Ada Approver',1795727893027524,'{"change": {"additions": ["+15550005"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 259200000, "ends": {}, "reason": "test 5", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2026-01-05T09:00:00Z", "shown_at": null}','{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:13.027524Z"}], "denial_reason": "", "failure": "No.", "is_unsure": false, "tries": 3, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "6866e55bf84c", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('6a838175f26c9d48','FW00000000000000000000000000000002','FW00000000000000000000000000000002','survey','U0OPERATOR','Otto Operator','applying',4,1795727893230064,1795814293230064,'U0APPROVER','Ada Approver',1795727893315154,'{"change": {"additions": ["+15550009"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 259200000, "ends": {}, "reason": "test 9", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2026-01-05T09:00:00Z", "shown_at": null}','{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:13.315154Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "384c5bbd6993", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO "requests" VALUES('d415b3cec2e0edb5','FW00000000000000000000000000000002','FW00000000000000000000000000000002','survey','U0OPERATOR','Otto Operator','failed',7,1795727893486084,1795814293486084,'U0APPROVER','Ada Approver',1795727893571048,'{"change": {"additions": ["+15550006", "+15550016"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7776000, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}','{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:13.571048Z"}], "denial_reason": "", "failure": "The flow service stored a different list from the one I sent. Please check it.", "is_unsure": false, "tries": 3, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": {"at": "2026-11-26T21:18:13.633912Z", "change": {"additions": ["+15550006"], "removals": []}, "already": {"additions": [], "removals": []}, "outside": {"additions": [], "removals": []}, "size_before": 0, "size_after": 1, "ends_at": {"+15550006": "2099-05-01T21:59:00Z"}, "previous_ends": {}}, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "fdc23ef929f2", "news": [], "rung": [], "rule": null, "announced_until": null}');
CREATE INDEX ix_audit_entries_subject_position ON audit_entries (subject, position);
CREATE INDEX ix_jobs_due_at ON jobs (due_at);
CREATE INDEX ix_outbox_messages_key_sent_at ON outbox_messages ("key", sent_at);
CREATE INDEX ix_outbox_messages_sent_at ON outbox_messages (sent_at);
CREATE INDEX ix_outbox_messages_subject ON outbox_messages (subject);
CREATE INDEX ix_home_views_opened_at ON home_views (opened_at);
CREATE INDEX ix_received_events_received_at ON received_events (received_at);
CREATE INDEX ix_requests_state_flow_key ON requests (state, flow_key);
CREATE INDEX ix_requests_flow_key_created_at ON requests (flow_key, created_at);
CREATE INDEX ix_grants_request_id ON grants (request_id);
CREATE INDEX ix_grants_flow_key_ends_at ON grants (flow_key, ends_at);
CREATE INDEX ix_flow_posts_flow_key_sent_at ON flow_posts (flow_key, sent_at);
CREATE INDEX ix_flow_changes_flow_key_id ON flow_changes (flow_key, id);
CREATE INDEX ix_quota_calls_organization_reserved_at_number ON quota_calls (organization, reserved_at, number);
CREATE INDEX ix_quota_calls_organization_slot_free_at ON quota_calls (organization, slot_free_at);
CREATE INDEX ix_incidents_closed_at ON incidents (closed_at);
CREATE INDEX ix_incidents_organization_code ON incidents (organization, code);
COMMIT;
