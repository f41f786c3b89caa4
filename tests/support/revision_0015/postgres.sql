CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.audit_entries (
    "position" bigint NOT NULL,
    at bigint NOT NULL,
    actor character varying(64) NOT NULL,
    action character varying(64) NOT NULL,
    subject character varying(255) NOT NULL,
    detail text NOT NULL,
    previous_hash character varying(64) NOT NULL,
    hash character varying(64) NOT NULL
);
CREATE TABLE public.audit_head (
    id integer NOT NULL,
    "position" bigint NOT NULL,
    hash character varying(64) NOT NULL
);
CREATE TABLE public.cards (
    key character varying(255) NOT NULL,
    channel_id character varying(64) NOT NULL,
    message_ts character varying(32) NOT NULL,
    fingerprint character varying(64) NOT NULL,
    sent_at bigint NOT NULL
);
CREATE TABLE public.flow_changes (
    id bigint NOT NULL,
    flow_key character varying(34) NOT NULL,
    at bigint NOT NULL,
    content json NOT NULL
);
CREATE SEQUENCE public.flow_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.flow_changes_id_seq OWNED BY public.flow_changes.id;
CREATE TABLE public.flow_posts (
    id character varying(32) NOT NULL,
    flow_key character varying(34) NOT NULL,
    sent_at bigint NOT NULL,
    content json NOT NULL,
    signature character varying(64)
);
CREATE TABLE public.gateway_waits (
    ticket bigint NOT NULL,
    organization bigint NOT NULL,
    client character varying(40) NOT NULL,
    until bigint NOT NULL
);
CREATE SEQUENCE public.gateway_waits_ticket_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.gateway_waits_ticket_seq OWNED BY public.gateway_waits.ticket;
CREATE TABLE public.grants (
    flow_key character varying(34) NOT NULL,
    identity text NOT NULL,
    flow_sid character varying(34) NOT NULL,
    request_id character varying(32) NOT NULL,
    granted_by json NOT NULL,
    approved_by json NOT NULL,
    granted_at bigint NOT NULL,
    ends_at bigint,
    signature character varying(64)
);
CREATE TABLE public.home_views (
    slack_user_id character varying(64) NOT NULL,
    opened_at bigint NOT NULL,
    published_at bigint,
    hash character varying(255),
    fingerprint character varying(64) NOT NULL,
    unsure_until bigint
);
CREATE TABLE public.incidents (
    id bigint NOT NULL,
    organization bigint NOT NULL,
    code integer NOT NULL,
    opened_at bigint NOT NULL,
    closed_at bigint,
    refusals integer NOT NULL,
    detail json NOT NULL
);
CREATE SEQUENCE public.incidents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.incidents_id_seq OWNED BY public.incidents.id;
CREATE TABLE public.jobs (
    key character varying(255) NOT NULL,
    kind character varying(32) NOT NULL,
    subject character varying(255) NOT NULL,
    payload json NOT NULL,
    due_at bigint NOT NULL,
    generation bigint NOT NULL,
    tries integer NOT NULL,
    owner character varying(64),
    leased_until bigint,
    last_error text,
    signature character varying(64)
);
CREATE TABLE public.outbox_messages (
    id bigint NOT NULL,
    key character varying(255) NOT NULL,
    kind character varying(32) NOT NULL,
    subject character varying(255) NOT NULL,
    payload json NOT NULL,
    created_at bigint NOT NULL,
    tries integer NOT NULL,
    sent_at bigint,
    failure text
);
CREATE SEQUENCE public.letters_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.letters_id_seq OWNED BY public.outbox_messages.id;
CREATE TABLE public.listings (
    data_center character varying(16) NOT NULL,
    fetched_at bigint NOT NULL,
    organizations json NOT NULL,
    digest character varying(64) DEFAULT ''::character varying NOT NULL
);
CREATE TABLE public.machine_clocks (
    boot character varying(64) NOT NULL,
    "offset" bigint NOT NULL
);
CREATE TABLE public.presets (
    name character varying(40) NOT NULL,
    identities json NOT NULL,
    saved_by json NOT NULL,
    saved_at bigint NOT NULL
);
CREATE TABLE public.quota_calls (
    organization bigint NOT NULL,
    number bigint NOT NULL,
    reserved_at bigint NOT NULL,
    slot_free_at bigint NOT NULL,
    permit_until bigint NOT NULL,
    kind character varying(32) NOT NULL,
    slack_user_id character varying(64) NOT NULL
);
CREATE TABLE public.quota_hours (
    organization bigint NOT NULL,
    hour_at bigint NOT NULL,
    kind character varying(32) NOT NULL,
    slack_user_id character varying(64) NOT NULL,
    calls integer NOT NULL
);
CREATE TABLE public.quota_organizations (
    id bigint NOT NULL,
    data_center character varying(16) NOT NULL,
    organization_id character varying(255) NOT NULL,
    summed bigint NOT NULL,
    plan character varying(16),
    lowered_day integer,
    reported_number bigint,
    reported_limit integer,
    reported_remaining integer,
    reported_unsure integer,
    reported_resets_at bigint,
    blocks json NOT NULL,
    probing_until bigint NOT NULL,
    muted_until bigint NOT NULL,
    watched_at bigint NOT NULL,
    muted_by text,
    lowered_concurrent integer,
    lowered_until bigint
);
CREATE SEQUENCE public.quota_organizations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.quota_organizations_id_seq OWNED BY public.quota_organizations.id;
CREATE TABLE public.received_events (
    event_id character varying(255) NOT NULL,
    received_at bigint NOT NULL,
    answered_at bigint
);
CREATE TABLE public.requests (
    id character varying(32) NOT NULL,
    flow_key character varying(34) NOT NULL,
    flow_sid character varying(34) NOT NULL,
    flow_alias character varying(255),
    requester_id character varying(64) NOT NULL,
    requester_name text NOT NULL,
    state character varying(16) NOT NULL,
    version integer NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    decided_by_id character varying(64),
    decided_by_name text,
    decided_at bigint,
    requested json NOT NULL,
    progress json NOT NULL,
    signature character varying(64)
);
ALTER TABLE ONLY public.flow_changes ALTER COLUMN id SET DEFAULT nextval('public.flow_changes_id_seq'::regclass);
ALTER TABLE ONLY public.gateway_waits ALTER COLUMN ticket SET DEFAULT nextval('public.gateway_waits_ticket_seq'::regclass);
ALTER TABLE ONLY public.incidents ALTER COLUMN id SET DEFAULT nextval('public.incidents_id_seq'::regclass);
ALTER TABLE ONLY public.outbox_messages ALTER COLUMN id SET DEFAULT nextval('public.letters_id_seq'::regclass);
ALTER TABLE ONLY public.quota_organizations ALTER COLUMN id SET DEFAULT nextval('public.quota_organizations_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0015');
INSERT INTO public.audit_entries VALUES (1, 1795372402627529, 'gatehouse', 'audit.key_began', 'audit', '{"content": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "signed_rows": 0}', '0000000000000000000000000000000000000000000000000000000000000000', '5576de44d93f658153af460ef10b544db62cd0e5f162616e5f495f8012347dfe');
INSERT INTO public.audit_entries VALUES (2, 1795372402996120, 'U0OPERATOR', 'request.created', '58f1685753940080', '{"additions": ["+15550001"], "duration_seconds": 1800, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "the demo", "removals": [], "request_id": "8ac7a09919af", "starts_at": null, "undo_of": null}', '5576de44d93f658153af460ef10b544db62cd0e5f162616e5f495f8012347dfe', 'd1c60beef12de03799bd882012aea982bceecd43c6191a04fa3c60d6b9d4c6d2');
INSERT INTO public.audit_entries VALUES (3, 1795372403078766, 'U0APPROVER', 'request.approved', '58f1685753940080', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "346dcdb9ea59", "state": "applying"}', 'd1c60beef12de03799bd882012aea982bceecd43c6191a04fa3c60d6b9d4c6d2', '12977af6e29250353a8658a2751c1b7351e0638dab583619f7273a0ce57533d5');
INSERT INTO public.audit_entries VALUES (4, 1795372403141443, 'gatehouse', 'flow.changed', 'FW00000000000000000000000000000001', '{"after": ["+15550100001", "whatsapp:+15550100002", "+15550001"], "before": ["+15550100001", "whatsapp:+15550100002"], "ended": [], "repaired": [], "request_id": "346dcdb9ea59", "requests": ["58f1685753940080"]}', '12977af6e29250353a8658a2751c1b7351e0638dab583619f7273a0ce57533d5', '2997df47233db9cd3031f1d452f5d1eb4165b302d667ca76232f74dadbb2ca58');
INSERT INTO public.audit_entries VALUES (5, 1795372403141443, 'gatehouse', 'request.applied', '58f1685753940080', '{"additions": ["+15550001"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "346dcdb9ea59"}', '2997df47233db9cd3031f1d452f5d1eb4165b302d667ca76232f74dadbb2ca58', 'dee5d56745a52f85114cf2b174a112aabe84295eab04a293994b5c604488ee85');
INSERT INTO public.audit_entries VALUES (6, 1795372403205932, 'U0ADMIN', 'request.created_without_approval', 'f049fc77caa2d83d', '{"additions": ["+15550009"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "it burns", "removals": [], "request_id": "f1e58137ebef", "starts_at": null, "undo_of": null}', 'dee5d56745a52f85114cf2b174a112aabe84295eab04a293994b5c604488ee85', '9f8cac8251647c834c713c424877ddc52ea8b76e9ed4e4a7d355f78c7adcf312');
INSERT INTO public.audit_entries VALUES (7, 1795372403228857, 'gatehouse', 'flow.changed', 'FW00000000000000000000000000000002', '{"after": ["ada@example.com", "+15550009"], "before": ["ada@example.com"], "ended": [], "repaired": [], "request_id": "f1e58137ebef", "requests": ["f049fc77caa2d83d"]}', '9f8cac8251647c834c713c424877ddc52ea8b76e9ed4e4a7d355f78c7adcf312', 'daefbc3da0b664291ee5cef91c34cb3a82ba9a3ac711796f8cec0d8e13ed0189');
INSERT INTO public.audit_entries VALUES (8, 1795372403228857, 'gatehouse', 'request.applied', 'f049fc77caa2d83d', '{"additions": ["+15550009"], "already_gone": [], "already_there": [], "approvers": [], "flow": "FW00000000000000000000000000000002", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "f1e58137ebef"}', 'daefbc3da0b664291ee5cef91c34cb3a82ba9a3ac711796f8cec0d8e13ed0189', '53ef52810c24fe0ae6b0580a666062b35800c2a305e1a574167c379a57370912');
INSERT INTO public.audit_entries VALUES (9, 1795372403279944, 'U0OPERATOR', 'request.created', 'f05abfe88365d699', '{"additions": ["+15550007"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "e5980177c35a", "starts_at": "2099-11-23T08:00:00+00:00", "undo_of": null}', '53ef52810c24fe0ae6b0580a666062b35800c2a305e1a574167c379a57370912', 'b72c7602dc8ce20b06be54759c6e06a11716ca8114c73de180b6362a7c918bca');
INSERT INTO public.audit_entries VALUES (10, 1795372403353023, 'U0APPROVER', 'request.approved', 'f05abfe88365d699', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "141294198a8b", "state": "scheduled"}', 'b72c7602dc8ce20b06be54759c6e06a11716ca8114c73de180b6362a7c918bca', 'de199390e9843b2adcb5b8a20b95371c6ea14454c090ae510aeaea6ab837a13a');
INSERT INTO public.audit_entries VALUES (11, 1795372403405436, 'U0OPERATOR', 'request.created', '70964fdb2a657cab', '{"additions": ["+15550005"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "85b644e95ee6", "starts_at": null, "undo_of": null}', 'de199390e9843b2adcb5b8a20b95371c6ea14454c090ae510aeaea6ab837a13a', '8a5b35c65e2c02dd0593d40ce738b5c82c2e6a6be99672d52e38ab6d66134018');
INSERT INTO public.audit_entries VALUES (12, 1795372403483352, 'U0OPERATOR', 'request.created', '2ffea32204498ca9', '{"additions": ["+15550003"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "0abe9cb2952d", "starts_at": null, "undo_of": null}', '8a5b35c65e2c02dd0593d40ce738b5c82c2e6a6be99672d52e38ab6d66134018', '48368853b2d1e2e86fa26c2a2be8b51aca4574d6ea280cabf0c7d412b8ef30b1');
INSERT INTO public.audit_entries VALUES (13, 1795372403562284, 'U0OPERATOR', 'preset.saved', 'demo', '{"after": ["+15551111", "+15552222"], "before": [], "request_id": "522be8b96ceb"}', '48368853b2d1e2e86fa26c2a2be8b51aca4574d6ea280cabf0c7d412b8ef30b1', 'f482f7dd5e97231d7c5bb6c7eef0bd268a609c04767db25f91c1aa61ef9fa33e');
INSERT INTO public.audit_entries VALUES (14, 1795372403681990, 'U0OPERATOR', 'request.created', 'a3928df2b185ebd0', '{"additions": ["+15550006"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "", "removals": [], "request_id": "9ed211e6ec2f", "starts_at": null, "undo_of": null}', 'f482f7dd5e97231d7c5bb6c7eef0bd268a609c04767db25f91c1aa61ef9fa33e', 'd17a092819466fed3f0deb4e5171ad5ec8c5e38ac02614ea62eba34136b980b5');
INSERT INTO public.audit_entries VALUES (15, 1795372403763825, 'U0APPROVER', 'request.approved', 'a3928df2b185ebd0', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "84df5cd76343", "state": "applying"}', 'd17a092819466fed3f0deb4e5171ad5ec8c5e38ac02614ea62eba34136b980b5', '057aadc049367faf1c5d5bbff1794d636d08febc8a78e8f76e06a95467a1f5ec');
INSERT INTO public.audit_entries VALUES (16, 1795372406897692, 'U0OPERATOR', 'request.created', 'a59e2637f77d680c', '{"additions": ["+15550004"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "", "removals": [], "request_id": "8081bbdbb4da", "starts_at": null, "undo_of": null}', '057aadc049367faf1c5d5bbff1794d636d08febc8a78e8f76e06a95467a1f5ec', '583e7721c8ceeb73309b9032ba75fa8b1911e52d9fb2f963940abeadd169c592');
INSERT INTO public.audit_entries VALUES (17, 1795372407298669, 'U0OPERATOR', 'request.created', '357063b49de52b0a', '{"additions": ["+15550002"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "a trial", "removals": [], "request_id": "472412f710e1", "starts_at": null, "undo_of": null}', '583e7721c8ceeb73309b9032ba75fa8b1911e52d9fb2f963940abeadd169c592', 'c54c151bface1562171796a2316fe8c644a9a6e4a8626caf325492a14f6003c8');
INSERT INTO public.audit_entries VALUES (18, 1795372407737070, 'U0APPROVER', 'request.approved', '357063b49de52b0a', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "1068300adf41", "state": "applying"}', 'c54c151bface1562171796a2316fe8c644a9a6e4a8626caf325492a14f6003c8', 'b5cc82662172e98000873ca7d6bd4140d34739946aa37486dd9793ab82681065');
INSERT INTO public.audit_head VALUES (1, 18, 'b5cc82662172e98000873ca7d6bd4140d34739946aa37486dd9793ab82681065');
INSERT INTO public.cards VALUES ('incident:1', 'C0ALERTS', '1795372402.967994', '234c3012273ea12096b32ca6d6e2797766bad52667b1f2e75ee7b1e2826acce2', 1795372402970457);
INSERT INTO public.cards VALUES ('request:58f1685753940080', 'C0APPROVALS', '1795372403.021463', '90406f7905637ca8d72b9e2046be8bf063c15687b7442b4d902fef35ab065032', 1795372403186558);
INSERT INTO public.cards VALUES ('request:f049fc77caa2d83d', 'C0APPROVALS', '1795372403.258553', 'bfce4bb00c08520a8b8723bd526890392659ca5e1bf8eb9a3c35f503365e268a', 1795372403260418);
INSERT INTO public.cards VALUES ('request:f05abfe88365d699', 'C0APPROVALS', '1795372403.296223', '520dfbe834b940940e6b51df6e6ab67a66823356b39161675d708e27bfaccdd8', 1795372403380239);
INSERT INTO public.cards VALUES ('request:70964fdb2a657cab', 'C0APPROVALS', '1795372403.427540', '3cca3091704a71319108ebae7689e69a7c288420504602b997a944871af2a3f3', 1795372403428869);
INSERT INTO public.cards VALUES ('request:2ffea32204498ca9', 'C0APPROVALS', '1795372403.498878', '7e3617bcfdfac17f3656ea1d63c4ef1b98cce93a42333b6ad21a0e7bfd013d66', 1795372403500048);
INSERT INTO public.cards VALUES ('request:a3928df2b185ebd0', 'C0APPROVALS', '1795372403.717745', '02172b42d9b139ffde5c16821b621d21a2d4ff0c68046b6953257308fd8cfafe', 1795372404969070);
INSERT INTO public.flow_changes VALUES (1, 'FW00000000000000000000000000000001', 1795372403141443, '{"additions":["+15550001"],"removals":[],"request_ids":["58f1685753940080"],"ended":[]}');
INSERT INTO public.flow_changes VALUES (2, 'FW00000000000000000000000000000002', 1795372403228857, '{"additions":["+15550009"],"removals":[],"request_ids":["f049fc77caa2d83d"],"ended":[]}');
INSERT INTO public.grants VALUES ('FW00000000000000000000000000000001', '"+15550001"', 'FW00000000000000000000000000000001', '58f1685753940080', '{"slack_user_id":"U0OPERATOR","name":"Otto Operator"}', '[{"slack_user_id":"U0APPROVER","name":"Ada Approver"}]', 1795372403141443, 1795374203141443, '41fe32ef63853b43c0289b3e1b7212789e9a4c4335b18e13c7d1a209383db1ad');
INSERT INTO public.grants VALUES ('FW00000000000000000000000000000002', '"+15550009"', 'FW00000000000000000000000000000002', 'f049fc77caa2d83d', '{"slack_user_id":"U0ADMIN","name":"Adam Admin"}', '[]', 1795372403228857, NULL, '58f90ec3a22d4e0016dc34220c36b74ab844dd8601ad76ede91d71717d9bf881');
INSERT INTO public.home_views VALUES ('U0OPERATOR', 1795372403576610, 1795372406690005, '1795372407.h46', 'aa54ba6aa1109fd6658c28dcd199e3dee2566ebfe520de74fc49e106d1cab188', NULL);
INSERT INTO public.home_views VALUES ('U0APPROVER', 1795372407691487, 1795372407719317, '1795372408.h54', 'fc37f32f54219c3cc5224e785df9b8ca350a079972fababdf9a2bb0ffa5e53ed', NULL);
INSERT INTO public.incidents VALUES (1, 9, 45, 1795372402912059, NULL, 1, '{"own":{"minute":[1,100],"day":[1,1000],"concurrent":[1,5]},"words":"Your organization has exceeded its API call rate limit of 1,000 requests a day.","sent_code":45,"is_foreign":true,"may_be_plan":false,"is_lowered":false,"clients":{},"ended_because":""}');
INSERT INTO public.jobs VALUES ('audit_witness', 'audit_witness', 'audit_witness', '{}', 1795458802627529, 1, 0, NULL, NULL, NULL, '29cb4606302f1a0bc9875c030dfbe0c9daf58269d7ce335b6b462bd54800efc7');
INSERT INTO public.jobs VALUES ('quota_tidy', 'quota_tidy', 'quota_tidy', '{}', 1795376002627529, 1, 0, NULL, NULL, NULL, '330c234dc4f2cb433fc8b7a219a47c7b7cffd76e0dfa28717e381c11b9195e46');
INSERT INTO public.jobs VALUES ('record', 'record', 'record', '{}', 1795372412688769, 1, 0, NULL, NULL, NULL, '74c65b7dab9a36eaf77a725de13d167733711022098892602891bc9909bf6161');
INSERT INTO public.jobs VALUES ('retain', 'retain', 'retain', '{}', 1795458802780497, 1, 0, NULL, NULL, NULL, '4faef1fc1b47d36b5bf5ba2d984bf07913c809b2d352ef3e9fc583d35c862097');
INSERT INTO public.jobs VALUES ('probe:9', 'probe', 'eu/20077314', '{}', 1795373302912059, 1, 0, NULL, NULL, NULL, 'cf0a59cccf83954d9e37aac2347bfd8f480dde4371103debf5bb709c49669513');
INSERT INTO public.jobs VALUES ('unposted:70964fdb2a657cab', 'testusers.unposted', '70964fdb2a657cab', '{}', 1795372463405436, 1, 0, NULL, NULL, NULL, '92eeeac034871c452124b099bccfe3b3de574da1092b5f3a819b2efb1d10964d');
INSERT INTO public.jobs VALUES ('unposted:2ffea32204498ca9', 'testusers.unposted', '2ffea32204498ca9', '{}', 1795372463483352, 1, 0, NULL, NULL, NULL, '5965d1525b22d02ae3401c867dc77f50dc72b53be93437b3877d23b06edba3ec');
INSERT INTO public.jobs VALUES ('start:f05abfe88365d699', 'testusers.start', 'f05abfe88365d699', '{}', 4098067200000000, 1, 0, NULL, NULL, NULL, '1a64f7df3846cc02bf43a112e78da33e428aa22e455bf4a550e90dd20519ff93');
INSERT INTO public.jobs VALUES ('send:request:a59e2637f77d680c', 'send', 'request:a59e2637f77d680c', '{}', 1795372407927937, 1, 1, NULL, NULL, 'Slack can''t be reached right now.', '8957ac6bf790e536b4d9146d403a9f85f4038034e71a3a327ad42ff50a69dadb');
INSERT INTO public.jobs VALUES ('send:request:357063b49de52b0a', 'send', 'request:357063b49de52b0a', '{}', 1795372409080038, 3, 0, NULL, NULL, 'Slack can''t be reached right now.', '96bd6d62f4d75524b88439ca4007913d6111138e79717f6c1dbcd62021501267');
INSERT INTO public.jobs VALUES ('apply:FW00000000000000000000000000000002', 'testusers.apply', 'FW00000000000000000000000000000002', '{}', 1795372407922074, 1, 2, NULL, NULL, NULL, 'd47a62f2d01e28105bd6668e2a7b8f11dca02456b5c6f201f5e20d8ab8a3d530');
INSERT INTO public.jobs VALUES ('homes:request:357063b49de52b0a', 'homes', 'request:357063b49de52b0a', '{}', 1795372409080038, 1, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('unposted:a59e2637f77d680c', 'testusers.unposted', 'a59e2637f77d680c', '{}', 1795372466897692, 1, 0, NULL, NULL, NULL, '2e48e37ce20725f8ab1015a7cacbc4523e65998acf8d70f380ce72c605067aa4');
INSERT INTO public.jobs VALUES ('apply:FW00000000000000000000000000000001', 'testusers.apply', 'FW00000000000000000000000000000001', '{}', 1795372410080038, 2, 2, NULL, NULL, NULL, '8ef930b66a44c6caf7b0acdbfbbdf8f10c6118afb1d6fe48fc2a8a6c5edc38bc');
INSERT INTO public.jobs VALUES ('home:U0APPROVER', 'home', 'U0APPROVER', '{}', 1795372410719317, 2, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('home:U0OPERATOR', 'home', 'U0OPERATOR', '{}', 1795372409690005, 8, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('interaction:c11c5ed000000001', 'testusers.interaction', '2ffea32204498ca9', '{"act":"approve","request_id":"2ffea32204498ca9","slack_user_id":"U0APPROVER","team_ids":["T0GATEHOUSE","T0GATEHOUSE"],"reply_to":"","denial_reason":""}', 1795372409167905, 1, 0, NULL, NULL, NULL, '15e3a848016fa3ba59da3abc2140089644e3db3915f0b146a2919ae2991a4020');
INSERT INTO public.jobs VALUES ('expire:70964fdb2a657cab', 'testusers.expire', '70964fdb2a657cab', '{}', 4102444800000000, 1, 0, NULL, NULL, NULL, '61de484530f66ad7bc54e904d0a8500dabc57e5b36d415fa1093a58c8c9d8e6d');
INSERT INTO public.jobs VALUES ('remind:70964fdb2a657cab', 'testusers.remind', '70964fdb2a657cab', '{}', 4102444800000000, 1, 0, NULL, NULL, NULL, 'a4fa00eb373732a9fb8a913ed183059a29d3b323859e0c07e3cc5a8cee85f59a');
INSERT INTO public.jobs VALUES ('expire:2ffea32204498ca9', 'testusers.expire', '2ffea32204498ca9', '{}', 4102444800000000, 1, 0, NULL, NULL, NULL, 'f574761d9f5af9c3b9a8268390d4687e17431c58bbe7199f49add96c98c4d3ec');
INSERT INTO public.jobs VALUES ('remind:2ffea32204498ca9', 'testusers.remind', '2ffea32204498ca9', '{}', 4102444800000000, 1, 0, NULL, NULL, NULL, 'ae5f061a245dda87be9e4d8479a8c7a253663e9d87d119fffd1565c0c02fbfc4');
INSERT INTO public.jobs VALUES ('expire:a59e2637f77d680c', 'testusers.expire', 'a59e2637f77d680c', '{}', 4102444800000000, 1, 0, NULL, NULL, NULL, 'c2ef7f36ab7f067e7c640e0ead4119793647b9865b7cc886a8dac617537d32a9');
INSERT INTO public.jobs VALUES ('remind:a59e2637f77d680c', 'testusers.remind', 'a59e2637f77d680c', '{}', 4102444800000000, 1, 0, NULL, NULL, NULL, '5302ee19b6e7b9278cc9fc39ea7f6b76b11dbdd7a1d94a524594cde17d9538e3');
INSERT INTO public.listings VALUES ('eu', 1795372402845619, '[{"organization_id":"20077314","name":"Müller & Söhne <Berlin>","contact_name":"Jörg Müller","email":"joerg@20077314.example","is_default_org":true,"language_code":"de","fiscal_year_start_month":0,"account_created_date":"2017-01-09","time_zone":"CET","is_org_active":true,"currency_id":"460000000000099","currency_code":"EUR","currency_symbol":"€","currency_format":"###,##0.00","price_precision":2},{"organization_id":"20077315","name":"Northwind Traders","contact_name":"Hanna Moos","email":"hanna@20077315.example","is_default_org":false,"language_code":"de","fiscal_year_start_month":0,"account_created_date":"2018-10-22","time_zone":"CET","is_org_active":true,"currency_id":"460000000000099","currency_code":"EUR","currency_symbol":"€","currency_format":"###,##0.00","price_precision":2},{"organization_id":"20145880","name":"Café Zoë","contact_name":"Zoë Laurent","email":"zoe@20145880.example","is_default_org":false,"language_code":"de","fiscal_year_start_month":0,"account_created_date":"2021-03-15","time_zone":"CET","is_org_active":true,"currency_id":"460000000000099","currency_code":"EUR","currency_symbol":"€","currency_format":"###,##0.00","price_precision":2}]', 'e58e4fa8109e57c0ede6d385cff0c5e99fc27a860e15d8d94dc27701888d5dd5');
INSERT INTO public.listings VALUES ('com', 1795372402852200, '[{"organization_id":"10234695","name":"Northwind Traders","contact_name":"Maria Anders","email":"maria@10234695.example","is_default_org":true,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2016-02-18","time_zone":"PST","is_org_active":true,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"10407630","name":"Tailspin Toys","contact_name":"John Smith","email":"john@10407630.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2019-07-03","time_zone":"PST","is_org_active":true,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"10988211","name":"🌵 Cactus & Co","contact_name":"Ana Ruiz","email":"ana@10988211.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2023-11-27","time_zone":"PST","is_org_active":true,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"10511902","name":"Wingtip Archive","contact_name":"Lee Gold","email":"lee@10511902.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2014-05-30","time_zone":"PST","is_org_active":false,"currency_id":"460000000000097","currency_code":"USD","currency_symbol":"$","currency_format":"###,##0.00","price_precision":2}]', 'ed9c0f4d89dd53ce054096a0200a8b886606812a19d699bf02fab05531b86a3a');
INSERT INTO public.listings VALUES ('ca', 1795372402868905, '[{"organization_id":"90001276","name":"Maple <Leaf> Outdoors","contact_name":"Chloé Tremblay","email":"chloe@90001276.example","is_default_org":true,"language_code":"fr","fiscal_year_start_month":0,"account_created_date":"2020-01-31","time_zone":"EST","is_org_active":true,"currency_id":"460000000000109","currency_code":"CAD","currency_symbol":"CA$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"90001301","name":"Hudson & Daughters","contact_name":"Emma Roy","email":"emma@90001301.example","is_default_org":false,"language_code":"fr","fiscal_year_start_month":0,"account_created_date":"2021-08-25","time_zone":"EST","is_org_active":true,"currency_id":"460000000000109","currency_code":"CAD","currency_symbol":"CA$","currency_format":"###,##0.00","price_precision":2}]', 'd82d2b751d07828c03ec2adf8ad78f0c4d31b1f295661aa6c5be6310a522a3ba');
INSERT INTO public.listings VALUES ('com.au', 1795372402869039, '[{"organization_id":"70003391","name":"Southern Cross Surfboards","contact_name":"Mia O''Brien","email":"mia@70003391.example","is_default_org":true,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2018-04-04","time_zone":"AEST","is_org_active":true,"currency_id":"460000000000105","currency_code":"AUD","currency_symbol":"A$","currency_format":"###,##0.00","price_precision":2},{"organization_id":"70003977","name":"Outback *Tools* _Hire_","contact_name":"Jack Walsh","email":"jack@70003977.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2013-09-19","time_zone":"AEST","is_org_active":false,"currency_id":"460000000000105","currency_code":"AUD","currency_symbol":"A$","currency_format":"###,##0.00","price_precision":2}]', '99400c3461e58c7038bc9327dcd9b9ea5e279e33f44181ad01a638134318bbba');
INSERT INTO public.listings VALUES ('com.cn', 1795372402875569, '[{"organization_id":"50006120","name":"上海晨光贸易有限公司","contact_name":"王 芳","email":"fang@50006120.example","is_default_org":true,"language_code":"zh","fiscal_year_start_month":0,"account_created_date":"2018-11-11","time_zone":"CST","is_org_active":true,"currency_id":"460000000000111","currency_code":"CNY","currency_symbol":"CN¥","currency_format":"###,##0.00","price_precision":2},{"organization_id":"50006544","name":"Lotus Electronics","contact_name":"Li Wei","email":"wei@50006544.example","is_default_org":false,"language_code":"zh","fiscal_year_start_month":0,"account_created_date":"2012-03-07","time_zone":"CST","is_org_active":false,"currency_id":"460000000000111","currency_code":"CNY","currency_symbol":"CN¥","currency_format":"###,##0.00","price_precision":2}]', '13bf4ce074230c7352af10be6e1fc2a70aaebc8098b8f7ec534f5dd98fb2abb9');
INSERT INTO public.listings VALUES ('sa', 1795372402874258, '[{"organization_id":"30002218","name":"شركة النخيل التجارية","contact_name":"نورة العتيبي","email":"noura@30002218.example","is_default_org":true,"language_code":"ar","fiscal_year_start_month":0,"account_created_date":"2021-05-05","time_zone":"AST","is_org_active":true,"currency_id":"460000000000113","currency_code":"SAR","currency_symbol":"ر.س","currency_format":"###,##0.00","price_precision":2},{"organization_id":"30002290","name":"Red Sea Logistics","contact_name":"Omar Saleh","email":"omar@30002290.example","is_default_org":false,"language_code":"ar","fiscal_year_start_month":0,"account_created_date":"2024-02-14","time_zone":"AST","is_org_active":true,"currency_id":"460000000000113","currency_code":"SAR","currency_symbol":"ر.س","currency_format":"###,##0.00","price_precision":2}]', '01d4c7c46652f151675fc17caa916658f84509b6d7b309c02ec206a9a106c12a');
INSERT INTO public.listings VALUES ('jp', 1795372402875737, '[{"organization_id":"80004410","name":"桜井製作所","contact_name":"桜井 健","email":"ken@80004410.example","is_default_org":true,"language_code":"ja","fiscal_year_start_month":0,"account_created_date":"2019-02-28","time_zone":"JST","is_org_active":true,"currency_id":"460000000000107","currency_code":"JPY","currency_symbol":"¥","currency_format":"###,##0.00","price_precision":0},{"organization_id":"80004655","name":"Kyoto Paper Works","contact_name":"Yui Tanaka","email":"yui@80004655.example","is_default_org":false,"language_code":"ja","fiscal_year_start_month":0,"account_created_date":"2022-06-16","time_zone":"JST","is_org_active":true,"currency_id":"460000000000107","currency_code":"JPY","currency_symbol":"¥","currency_format":"###,##0.00","price_precision":0}]', 'b417da47333cc9672ae3d5377b17d63c534da9c4c4b6a45e149a08c06e3af65d');
INSERT INTO public.listings VALUES ('in', 1795372402887079, '[{"organization_id":"60018842","name":"Sundaram Textiles","contact_name":"Priya Nair","email":"priya@60018842.example","is_default_org":true,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2015-08-12","time_zone":"IST","is_org_active":true,"currency_id":"460000000000103","currency_code":"INR","currency_symbol":"₹","currency_format":"###,##0.00","price_precision":2},{"organization_id":"60020957","name":"Ganges Spice Exports","contact_name":"Ravi Kumar","email":"ravi@60020957.example","is_default_org":false,"language_code":"en","fiscal_year_start_month":0,"account_created_date":"2020-12-01","time_zone":"IST","is_org_active":true,"currency_id":"460000000000103","currency_code":"INR","currency_symbol":"₹","currency_format":"###,##0.00","price_precision":2}]', '1d3a8a204f79eb331c883b3d378de20e89f34f7297aeea7ab89430719f3f1390');
INSERT INTO public.outbox_messages VALUES (1, 'incident:1', 'incident_card', '1', '{}', 1795372402931764, 1, 1795372402970457, NULL);
INSERT INTO public.outbox_messages VALUES (2, 'request:58f1685753940080', 'testusers.card', '58f1685753940080', '{}', 1795372402996120, 1, 1795372403022708, NULL);
INSERT INTO public.outbox_messages VALUES (3, 'request:58f1685753940080', 'testusers.card', '58f1685753940080', '{}', 1795372403078766, 0, 1795372403134718, NULL);
INSERT INTO public.outbox_messages VALUES (4, 'request:58f1685753940080', 'testusers.card', '58f1685753940080', '{}', 1795372403141443, 0, 1795372403186558, NULL);
INSERT INTO public.outbox_messages VALUES (5, 'requester:58f1685753940080', 'testusers.outcome', '58f1685753940080', '{"event":"applied"}', 1795372403141443, 0, 1795372403196063, NULL);
INSERT INTO public.outbox_messages VALUES (6, 'request:f049fc77caa2d83d', 'testusers.card', 'f049fc77caa2d83d', '{}', 1795372403228857, 1, 1795372403260418, NULL);
INSERT INTO public.outbox_messages VALUES (7, 'requester:f049fc77caa2d83d', 'testusers.outcome', 'f049fc77caa2d83d', '{"event":"applied"}', 1795372403228857, 0, 1795372403267822, NULL);
INSERT INTO public.outbox_messages VALUES (8, 'request:f05abfe88365d699', 'testusers.card', 'f05abfe88365d699', '{}', 1795372403279944, 1, 1795372403297274, NULL);
INSERT INTO public.outbox_messages VALUES (9, 'request:f05abfe88365d699', 'testusers.card', 'f05abfe88365d699', '{}', 1795372403353023, 0, 1795372403380239, NULL);
INSERT INTO public.outbox_messages VALUES (10, 'requester:f05abfe88365d699', 'testusers.outcome', 'f05abfe88365d699', '{"event":"scheduled"}', 1795372403353023, 0, 1795372403399372, NULL);
INSERT INTO public.outbox_messages VALUES (11, 'request:70964fdb2a657cab', 'testusers.card', '70964fdb2a657cab', '{}', 1795372403405436, 1, 1795372403428869, NULL);
INSERT INTO public.outbox_messages VALUES (12, 'request:2ffea32204498ca9', 'testusers.card', '2ffea32204498ca9', '{}', 1795372403483352, 1, 1795372403500048, NULL);
INSERT INTO public.outbox_messages VALUES (13, 'request:a3928df2b185ebd0', 'testusers.card', 'a3928df2b185ebd0', '{}', 1795372403681990, 1, 1795372403719316, NULL);
INSERT INTO public.outbox_messages VALUES (14, 'request:a3928df2b185ebd0', 'testusers.card', 'a3928df2b185ebd0', '{}', 1795372403763825, 0, 1795372403805801, NULL);
INSERT INTO public.outbox_messages VALUES (15, 'request:a3928df2b185ebd0', 'testusers.card', 'a3928df2b185ebd0', '{}', 1795372403839160, 0, 1795372403879240, NULL);
INSERT INTO public.outbox_messages VALUES (16, 'request:a3928df2b185ebd0', 'testusers.card', 'a3928df2b185ebd0', '{}', 1795372404922074, 0, 1795372404969070, NULL);
INSERT INTO public.outbox_messages VALUES (17, 'request:a59e2637f77d680c', 'testusers.card', 'a59e2637f77d680c', '{}', 1795372406897692, 1, NULL, NULL);
INSERT INTO public.outbox_messages VALUES (18, 'request:357063b49de52b0a', 'testusers.card', '357063b49de52b0a', '{}', 1795372407298669, 1, 1795372407757686, NULL);
INSERT INTO public.outbox_messages VALUES (19, 'request:357063b49de52b0a', 'testusers.card', '357063b49de52b0a', '{}', 1795372407737070, 1, NULL, NULL);
INSERT INTO public.outbox_messages VALUES (20, 'request:357063b49de52b0a', 'testusers.card', '357063b49de52b0a', '{}', 1795372409080038, 0, NULL, NULL);
INSERT INTO public.presets VALUES ('demo', '["+15551111","+15552222"]', '{"slack_user_id":"U0OPERATOR","name":"Otto Operator"}', 1795372403562284);
INSERT INTO public.quota_calls VALUES (2, 1, 1795372402789249, 1795372462884940, 1795372402835623, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (1, 1, 1795372402787408, 1795372462884824, 1795372402835796, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (3, 1, 1795372402824504, 1795372462897176, 1795372402847750, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (5, 1, 1795372402827589, 1795372462901123, 1795372402851654, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (4, 1, 1795372402828390, 1795372462903862, 1795372402854543, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (6, 1, 1795372402828594, 1795372462907643, 1795372402858332, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (8, 1, 1795372402834193, 1795372462912775, 1795372402863436, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (7, 1, 1795372402829318, 1795372462916382, 1795372402866978, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (9, 1, 1795372402906982, 1795372462962231, 1795372402936349, 'check', 'U0OPERATOR');
INSERT INTO public.quota_organizations VALUES (1, 'com', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (2, 'eu', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (3, 'com.au', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (4, 'sa', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (5, 'ca', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (6, 'jp', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (7, 'in', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (8, 'com.cn', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (9, 'eu', '20077314', 0, NULL, 1000, NULL, NULL, NULL, NULL, NULL, '[{"code":45,"since":1795372402.9120586,"until":1795373302.9120586,"failed_tries":0}]', 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.received_events VALUES ('signature:c94499051c4802238cf4a84a7539aa52fbe8f6cbf2dfc2b38dc7aeb7500f7634', 1795372402703425, 1795372402703425);
INSERT INTO public.received_events VALUES ('signature:8ac7a09919af630813de134b9207ae59d5195c84538bd6aebe908b10faa9ed38', 1795372402975616, 1795372402975616);
INSERT INTO public.received_events VALUES ('signature:346dcdb9ea5980217d7ff7eba62073c65bb591b1d50fba3369760718f5771981', 1795372403070005, 1795372403070005);
INSERT INTO public.received_events VALUES ('signature:f1e58137ebef189f9b2ec3e3e35769dea9a56f87e4ffedb71b964137e9977053', 1795372403194317, 1795372403194317);
INSERT INTO public.received_events VALUES ('signature:e5980177c35af9214384bcf09f50195e644897b249f7aa81c564cb90ef20ed2b', 1795372403265301, 1795372403265301);
INSERT INTO public.received_events VALUES ('signature:141294198a8b95e9a9611f3877110a2ff69ef8f221d47a212ef924bdb352ee30', 1795372403346521, 1795372403346521);
INSERT INTO public.received_events VALUES ('signature:85b644e95ee65c0b3d2079e66af75ac5c09478f3ec25888dcca502773e0d1383', 1795372403385463, 1795372403385463);
INSERT INTO public.received_events VALUES ('signature:0abe9cb2952dee9db6b07b1824ace4853afafcf18f718db5cee4181854c0d034', 1795372403474748, 1795372403474748);
INSERT INTO public.received_events VALUES ('signature:522be8b96ceb0a28488c38ec01afebb4e912871f39556f571e1763f0a98ce6f3', 1795372403552922, 1795372403552922);
INSERT INTO public.received_events VALUES ('signature:9ed211e6ec2fcb31fbed706973c8244631a971fb5558e29e10f9abdb32a98caa', 1795372403653513, 1795372403653513);
INSERT INTO public.received_events VALUES ('signature:84df5cd763436369da86350525fcdecd711541ec6277c3ea240251f49bcdab5b', 1795372403755414, 1795372403755414);
INSERT INTO public.received_events VALUES ('signature:8081bbdbb4da3142df209df492589edd6f8080c13ddfbc9cd7b588ff06a002c8', 1795372406883791, 1795372406883791);
INSERT INTO public.received_events VALUES ('signature:472412f710e126fdc46b0fe5871b505aa9758b2187c8ad1a5e724b4246999ea9', 1795372407285799, 1795372407285799);
INSERT INTO public.received_events VALUES ('signature:1068300adf417f079fa942f6f38955328bfb1afffde08770ef593e59c52a1ad6', 1795372407722890, 1795372407722890);
INSERT INTO public.requests VALUES ('58f1685753940080', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'applied', 3, 1795372402996120, 4102444800000000, 'U0APPROVER', 'Ada Approver', 1795372403078766, '{"change":{"additions":["+15550001"],"removals":[]},"seen":[],"seen_change_id":0,"end_changes":[],"duration_seconds":1800,"ends":{},"reason":"the demo","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}', '{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:23.078766Z","click_id":"click:8e05b764a87bb630"}],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":{"at":"2026-11-22T18:33:23.141443Z","change":{"additions":["+15550001"],"removals":[]},"already":{"additions":[],"removals":[]},"outside":{"additions":[],"removals":[]},"size_before":2,"size_after":3,"ends_at":{"+15550001":"2026-11-22T19:03:23.141443Z"},"previous_ends":{}},"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"346dcdb9ea59"}', '9f4677eb802ec203b6d4784f0737c8284998a8b224621e28e80dd2016b4ad568');
INSERT INTO public.requests VALUES ('f049fc77caa2d83d', 'FW00000000000000000000000000000002', 'FW00000000000000000000000000000002', 'survey', 'U0ADMIN', 'Adam Admin', 'applied', 2, 1795372403205932, 4102444800000000, 'U0ADMIN', 'Adam Admin', 1795372403205932, '{"change":{"additions":["+15550009"],"removals":[]},"seen":[],"seen_change_id":0,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"it burns","without_approval":true,"undo_of":null,"current_ends":{},"starts_at":null}', '{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":{"at":"2026-11-22T18:33:23.228857Z","change":{"additions":["+15550009"],"removals":[]},"already":{"additions":[],"removals":[]},"outside":{"additions":[],"removals":[]},"size_before":1,"size_after":2,"ends_at":{},"previous_ends":{}},"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"f1e58137ebef"}', 'b5d71260604e1b308b8d2a2027cc376ea29057688b1e3d1e109907f6b7aa5b8a');
INSERT INTO public.requests VALUES ('f05abfe88365d699', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'scheduled', 2, 1795372403279944, 4102444800000000, 'U0APPROVER', 'Ada Approver', 1795372403353023, '{"change":{"additions":["+15550007"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":"2099-11-23T08:00:00Z"}', '{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:23.353023Z","click_id":"click:c0a6240c6aa6983d"}],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"141294198a8b"}', '217b7b09c77470c3e7ac18acf4b3098c396cf0053d6f8602b5fbc08150fe27ae');
INSERT INTO public.requests VALUES ('70964fdb2a657cab', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'pending', 1, 1795372403405436, 4102444800000000, NULL, NULL, NULL, '{"change":{"additions":["+15550005"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}', '{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":""}', 'a645a3cdfac61c1b8ad2a90dc4021e8e696ed95f28037517b778a9ab92652f6d');
INSERT INTO public.requests VALUES ('2ffea32204498ca9', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'pending', 1, 1795372403483352, 4102444800000000, NULL, NULL, NULL, '{"change":{"additions":["+15550003"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}', '{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":""}', 'f1149e466244f7c2bdfbd51a518ded46690d9c8366e6c75e1b92bb46c921f117');
INSERT INTO public.requests VALUES ('a3928df2b185ebd0', 'FW00000000000000000000000000000002', 'FW00000000000000000000000000000002', 'survey', 'U0OPERATOR', 'Otto Operator', 'applying', 4, 1795372403681990, 4102444800000000, 'U0APPROVER', 'Ada Approver', 1795372403763825, '{"change":{"additions":["+15550006"],"removals":[]},"seen":["ada@example.com","+15550009"],"seen_change_id":2,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}', '{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:23.763825Z","click_id":"click:2b2d3d1343697976"}],"denial_reason":"","failure":"The flow service rejected the request (HTTP 400). It said: “Something went wrong.”","is_unsure":false,"tries":2,"retry_at":"2026-11-22T18:33:27.922074Z","retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"84df5cd76343"}', 'd52afd6176482464050ecfce0df43c8991215cd7a3c64e44fb30e0b4bf13537d');
INSERT INTO public.requests VALUES ('a59e2637f77d680c', 'FW00000000000000000000000000000002', 'FW00000000000000000000000000000002', 'survey', 'U0OPERATOR', 'Otto Operator', 'pending', 1, 1795372406897692, 4102444800000000, NULL, NULL, NULL, '{"change":{"additions":["+15550004"],"removals":[]},"seen":["ada@example.com","+15550009"],"seen_change_id":2,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}', '{"approvals":[],"denial_reason":"","failure":"","is_unsure":false,"tries":0,"retry_at":null,"retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":""}', '374d4da17187923e2f87cc84c0d71ec232c2dae54b951038d9bfcfde402b5c54');
INSERT INTO public.requests VALUES ('357063b49de52b0a', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'applying', 3, 1795372407298669, 4102444800000000, 'U0APPROVER', 'Ada Approver', 1795372407737070, '{"change":{"additions":["+15550002"],"removals":[]},"seen":["+15550100001","whatsapp:+15550100002","+15550001"],"seen_change_id":1,"end_changes":[],"duration_seconds":null,"ends":{},"reason":"a trial","without_approval":false,"undo_of":null,"current_ends":{},"starts_at":null}', '{"approvals":[{"who":{"slack_user_id":"U0APPROVER","name":"Ada Approver"},"at":"2026-11-22T18:33:27.737070Z","click_id":"click:a9d1e655497603da"}],"denial_reason":"","failure":"The flow service is having problems (HTTP 503). Try again in a few minutes.","is_unsure":false,"tries":1,"retry_at":"2026-11-22T18:33:30.080038Z","retries":[],"landed":{"additions":[],"removals":[]},"part":null,"done":null,"ended":[],"superseded":[],"overdue":"","undone_by":null,"is_undone":false,"undo_given_up_at":null,"delivery_id":"1068300adf41"}', '090c0e3e9cf8b559c61bfc125344eb9783efe3352a54ad453d261f12f92393d6');
SELECT pg_catalog.setval('public.flow_changes_id_seq', 2, true);
SELECT pg_catalog.setval('public.gateway_waits_ticket_seq', 1, false);
SELECT pg_catalog.setval('public.incidents_id_seq', 1, true);
SELECT pg_catalog.setval('public.letters_id_seq', 20, true);
SELECT pg_catalog.setval('public.quota_organizations_id_seq', 9, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.audit_entries
    ADD CONSTRAINT pk_audit_entries PRIMARY KEY ("position");
ALTER TABLE ONLY public.audit_head
    ADD CONSTRAINT pk_audit_head PRIMARY KEY (id);
ALTER TABLE ONLY public.cards
    ADD CONSTRAINT pk_cards PRIMARY KEY (key);
ALTER TABLE ONLY public.flow_changes
    ADD CONSTRAINT pk_flow_changes PRIMARY KEY (id);
ALTER TABLE ONLY public.flow_posts
    ADD CONSTRAINT pk_flow_posts PRIMARY KEY (id);
ALTER TABLE ONLY public.gateway_waits
    ADD CONSTRAINT pk_gateway_waits PRIMARY KEY (ticket);
ALTER TABLE ONLY public.grants
    ADD CONSTRAINT pk_grants PRIMARY KEY (flow_key, identity);
ALTER TABLE ONLY public.home_views
    ADD CONSTRAINT pk_home_views PRIMARY KEY (slack_user_id);
ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT pk_incidents PRIMARY KEY (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT pk_jobs PRIMARY KEY (key);
ALTER TABLE ONLY public.outbox_messages
    ADD CONSTRAINT pk_letters PRIMARY KEY (id);
ALTER TABLE ONLY public.listings
    ADD CONSTRAINT pk_listings PRIMARY KEY (data_center);
ALTER TABLE ONLY public.machine_clocks
    ADD CONSTRAINT pk_machine_clocks PRIMARY KEY (boot);
ALTER TABLE ONLY public.presets
    ADD CONSTRAINT pk_presets PRIMARY KEY (name);
ALTER TABLE ONLY public.quota_calls
    ADD CONSTRAINT pk_quota_calls PRIMARY KEY (organization, number);
ALTER TABLE ONLY public.quota_hours
    ADD CONSTRAINT pk_quota_hours PRIMARY KEY (organization, hour_at, kind, slack_user_id);
ALTER TABLE ONLY public.quota_organizations
    ADD CONSTRAINT pk_quota_organizations PRIMARY KEY (id);
ALTER TABLE ONLY public.received_events
    ADD CONSTRAINT pk_received_events PRIMARY KEY (event_id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT pk_requests PRIMARY KEY (id);
ALTER TABLE ONLY public.quota_organizations
    ADD CONSTRAINT uq_quota_organizations_data_center_organization_id UNIQUE (data_center, organization_id);
CREATE INDEX ix_audit_entries_subject_position ON public.audit_entries USING btree (subject, "position");
CREATE INDEX ix_flow_changes_flow_key_id ON public.flow_changes USING btree (flow_key, id);
CREATE INDEX ix_flow_posts_flow_key_sent_at ON public.flow_posts USING btree (flow_key, sent_at);
CREATE INDEX ix_gateway_waits_organization_until ON public.gateway_waits USING btree (organization, until);
CREATE INDEX ix_grants_flow_key_ends_at ON public.grants USING btree (flow_key, ends_at);
CREATE INDEX ix_grants_request_id ON public.grants USING btree (request_id);
CREATE INDEX ix_home_views_opened_at ON public.home_views USING btree (opened_at);
CREATE INDEX ix_incidents_closed_at ON public.incidents USING btree (closed_at);
CREATE INDEX ix_incidents_organization_code ON public.incidents USING btree (organization, code);
CREATE INDEX ix_jobs_due_at ON public.jobs USING btree (due_at);
CREATE INDEX ix_outbox_messages_key_sent_at ON public.outbox_messages USING btree (key, sent_at);
CREATE INDEX ix_outbox_messages_sent_at ON public.outbox_messages USING btree (sent_at);
CREATE INDEX ix_outbox_messages_subject ON public.outbox_messages USING btree (subject);
CREATE INDEX ix_quota_calls_organization_reserved_at_number ON public.quota_calls USING btree (organization, reserved_at, number);
CREATE INDEX ix_quota_calls_organization_slot_free_at ON public.quota_calls USING btree (organization, slot_free_at);
CREATE INDEX ix_quota_hours_hour_at ON public.quota_hours USING btree (hour_at);
CREATE INDEX ix_received_events_received_at ON public.received_events USING btree (received_at);
CREATE INDEX ix_requests_flow_key_created_at ON public.requests USING btree (flow_key, created_at);
CREATE INDEX ix_requests_state_flow_key ON public.requests USING btree (state, flow_key);
