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
    content json NOT NULL
);
CREATE TABLE public.grants (
    flow_key character varying(34) NOT NULL,
    identity text NOT NULL,
    flow_sid character varying(34) NOT NULL,
    request_id character varying(32) NOT NULL,
    granted_by json NOT NULL,
    approved_by json NOT NULL,
    granted_at bigint NOT NULL,
    ends_at bigint
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
    last_error text
);
CREATE TABLE public.listings (
    data_center character varying(16) NOT NULL,
    fetched_at bigint NOT NULL,
    organizations json NOT NULL,
    digest character varying(64) DEFAULT ''::character varying NOT NULL
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
CREATE SEQUENCE public.outbox_messages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.outbox_messages_id_seq OWNED BY public.outbox_messages.id;
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
    lowered_until bigint,
    lowered_minute integer,
    lowered_minute_until bigint
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
    progress json NOT NULL
);
ALTER TABLE ONLY public.flow_changes ALTER COLUMN id SET DEFAULT nextval('public.flow_changes_id_seq'::regclass);
ALTER TABLE ONLY public.incidents ALTER COLUMN id SET DEFAULT nextval('public.incidents_id_seq'::regclass);
ALTER TABLE ONLY public.outbox_messages ALTER COLUMN id SET DEFAULT nextval('public.outbox_messages_id_seq'::regclass);
ALTER TABLE ONLY public.quota_organizations ALTER COLUMN id SET DEFAULT nextval('public.quota_organizations_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0020');
INSERT INTO public.audit_entries VALUES (1, 1795727896185378, 'U0OPERATOR', 'request.created', 'bf69a55647c7e09d', '{"additions": ["+15550001"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "355eb8c58e3a", "starts_at": null, "undo_of": null}', '0000000000000000000000000000000000000000000000000000000000000000', 'a7f2341a17851882295617bb8b9d4b92791a586bd59558fa53f1d5d97fe42995');
INSERT INTO public.audit_entries VALUES (2, 1795727896290400, 'U0OPERATOR', 'request.created', '9cd0b0ef636a62f0', '{"additions": ["+15550002"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "25e9b0cb9852", "starts_at": "2026-11-27T08:00:00+00:00", "undo_of": null}', 'a7f2341a17851882295617bb8b9d4b92791a586bd59558fa53f1d5d97fe42995', 'fd7cfffb28e0dfa58f158997b816f5d9eee45531b8317c1ac62bc027c69e1209');
INSERT INTO public.audit_entries VALUES (3, 1795727896381276, 'U0OPERATOR', 'request.created', 'aea77a9dc9a8b444', '{"additions": ["+15550003"], "duration_seconds": 172800, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "d4fb2c846ca6", "starts_at": "2026-11-27T08:00:00+00:00", "undo_of": null}', 'fd7cfffb28e0dfa58f158997b816f5d9eee45531b8317c1ac62bc027c69e1209', 'feb77c4882d1ccfb7e4d0ff4744869610b9650bcfd5e5d204d84eda7c74048fc');
INSERT INTO public.audit_entries VALUES (4, 1795727896484402, 'U0APPROVER', 'request.approved', 'aea77a9dc9a8b444', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "c05217216012", "state": "scheduled"}', 'feb77c4882d1ccfb7e4d0ff4744869610b9650bcfd5e5d204d84eda7c74048fc', '6716dcfb0ca58c08e0e5e446daebd0433036e2d08e45b82d791d0a1ce4fcbc8a');
INSERT INTO public.audit_entries VALUES (5, 1795727896640990, 'U0OPERATOR', 'request.created', '7548484e71fd746e', '{"additions": ["+15550004"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "a25f493b8904", "starts_at": "2026-11-27T08:00:00+00:00", "undo_of": null}', '6716dcfb0ca58c08e0e5e446daebd0433036e2d08e45b82d791d0a1ce4fcbc8a', 'cba1399c198e20b572855506c27df0b7283407a599781c5a77f3be8e0fc32790');
INSERT INTO public.audit_entries VALUES (6, 1795727896729262, 'U0APPROVER', 'request.approved', '7548484e71fd746e', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "344f986a3720", "state": "scheduled"}', 'cba1399c198e20b572855506c27df0b7283407a599781c5a77f3be8e0fc32790', '1878c6bbe799c57600e52dbc6166bf7b59b9e397e0fd7f12f0ca00dd3b9160e6');
INSERT INTO public.audit_entries VALUES (7, 1795727896856879, 'U0OPERATOR', 'request.created', 'cd35728daace325e', '{"additions": ["+15550007"], "duration_seconds": 259200, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "c5457b3ab198", "starts_at": null, "undo_of": null}', '1878c6bbe799c57600e52dbc6166bf7b59b9e397e0fd7f12f0ca00dd3b9160e6', '3a5c1059539d6b9a44040f89af63b4c3649676a241096458ab589c9cf9b97da4');
INSERT INTO public.audit_entries VALUES (8, 1795727896958083, 'U0APPROVER', 'request.approved', 'cd35728daace325e', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "5164ba89f7c5", "state": "applying"}', '3a5c1059539d6b9a44040f89af63b4c3649676a241096458ab589c9cf9b97da4', 'e4d2aa7d6d3651561f27fa6530ac0527395d0a788cdc07c7fe4a6ade14dac3a6');
INSERT INTO public.audit_entries VALUES (9, 1795727897055409, 'gatehouse', 'flow.changed', 'FW00000000000000000000000000000001', '{"after": ["+15550100001", "+15550007"], "before": ["+15550100001"], "ended": [], "request_id": "5164ba89f7c5", "requests": ["cd35728daace325e"]}', 'e4d2aa7d6d3651561f27fa6530ac0527395d0a788cdc07c7fe4a6ade14dac3a6', '1021beca4c4c0af8c78f52b94073313dbc0ee636b06e0fb0533f60af69ab742c');
INSERT INTO public.audit_entries VALUES (10, 1795727897055409, 'gatehouse', 'request.applied', 'cd35728daace325e', '{"additions": ["+15550007"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "5164ba89f7c5"}', '1021beca4c4c0af8c78f52b94073313dbc0ee636b06e0fb0533f60af69ab742c', 'd240ccb07f7172471beb8a2134f0000d2548adb1149dc2b5863f1aa7f9d620b2');
INSERT INTO public.audit_entries VALUES (11, 1795727897200738, 'U0OPERATOR', 'request.created', '0bdfac7cfb1fdf8a', '{"additions": ["+15550008"], "duration_seconds": null, "end_changes": [], "flow": "FW00000000000000000000000000000001", "reason": "", "removals": [], "request_id": "246f9ccf55c2", "starts_at": null, "undo_of": null}', 'd240ccb07f7172471beb8a2134f0000d2548adb1149dc2b5863f1aa7f9d620b2', 'e323f14b284f8be40d70843088b78c969be9963ecf0e01bbd523e2bb288171b8');
INSERT INTO public.audit_entries VALUES (12, 1795727897309958, 'U0APPROVER', 'request.approved', '0bdfac7cfb1fdf8a', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "lapsed": [], "reason": "", "request_id": "cd32a9c853f0", "state": "applying"}', 'e323f14b284f8be40d70843088b78c969be9963ecf0e01bbd523e2bb288171b8', 'c9052c69657cf235e0afd861dd76faa6be7d213c84aec2d18013309aea469c6a');
INSERT INTO public.audit_entries VALUES (13, 1795727897416130, 'gatehouse', 'flow.changed', 'FW00000000000000000000000000000001', '{"after": ["+15550100001", "+15550007", "+15550008"], "before": ["+15550100001", "+15550007"], "ended": [], "request_id": "cd32a9c853f0", "requests": ["0bdfac7cfb1fdf8a"]}', 'c9052c69657cf235e0afd861dd76faa6be7d213c84aec2d18013309aea469c6a', '7411b1c7f04fdf15db0aa3c9342bd5b96e9bb8cf40a5ad0b68f0cac6a966ea8c');
INSERT INTO public.audit_entries VALUES (14, 1795727897416130, 'gatehouse', 'request.applied', '0bdfac7cfb1fdf8a', '{"additions": ["+15550008"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000001", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "cd32a9c853f0"}', '7411b1c7f04fdf15db0aa3c9342bd5b96e9bb8cf40a5ad0b68f0cac6a966ea8c', '834169a538f85f57cf525fb84a05e49c3e601dd4b1b1a53d2d313f27254f7e54');
INSERT INTO public.audit_entries VALUES (15, 1795727897656045, 'U0OPERATOR', 'preset.saved', 'demo', '{"after": ["+15550100", "+15550101"], "before": [], "request_id": "b99c68f8bf76"}', '834169a538f85f57cf525fb84a05e49c3e601dd4b1b1a53d2d313f27254f7e54', '5ba24c0bac789e09b16257a806f65283feb8ce7507711d7c5b0d70ef3847ef03');
INSERT INTO public.audit_entries VALUES (16, 1795727897686715, 'U0OPERATOR', 'request.created', 'acc83cc8310db9fb', '{"additions": ["+15550005"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "test 5", "removals": [], "request_id": "a2d929b8abd0", "starts_at": null, "undo_of": null}', '5ba24c0bac789e09b16257a806f65283feb8ce7507711d7c5b0d70ef3847ef03', 'aa4839cc134d0e83682884af5953928c8e3b533ab1b1fb3a375b85ccf9f85f17');
INSERT INTO public.audit_entries VALUES (17, 1795727897777795, 'U0APPROVER', 'request.approved', 'acc83cc8310db9fb', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "5f65f2e7c87c", "state": "applying"}', 'aa4839cc134d0e83682884af5953928c8e3b533ab1b1fb3a375b85ccf9f85f17', 'afeeed1a92829910f10522214f898e652d7168f5d415919e25b5170e73d0c4c4');
INSERT INTO public.audit_entries VALUES (18, 1795727897841339, 'gatehouse', 'request.failed', 'acc83cc8310db9fb', '{"flow": "FW00000000000000000000000000000002", "reason": "No.", "request_id": "5f65f2e7c87c"}', 'afeeed1a92829910f10522214f898e652d7168f5d415919e25b5170e73d0c4c4', 'd11e6adf5cf663bf24138e4456f9381cc4ebc209b93b9386500f7006c62c05fd');
INSERT INTO public.audit_entries VALUES (19, 1795727898014205, 'U0OPERATOR', 'request.created', '0d08ed89248759bb', '{"additions": ["+15550009"], "duration_seconds": 7200, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "test 9", "removals": [], "request_id": "dd408ab1bb06", "starts_at": null, "undo_of": null}', 'd11e6adf5cf663bf24138e4456f9381cc4ebc209b93b9386500f7006c62c05fd', '3a9b65643627b7ca01f95dd062fa77e5da4e8e351ad3e8abcafa673e9c25eed1');
INSERT INTO public.audit_entries VALUES (20, 1795727898118505, 'U0APPROVER', 'request.approved', '0d08ed89248759bb', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "754f425a6362", "state": "applying"}', '3a9b65643627b7ca01f95dd062fa77e5da4e8e351ad3e8abcafa673e9c25eed1', 'b07366a91749bb3aff7322b78d489cf4379efbe8ae2a3582310d3cfece367dc0');
INSERT INTO public.audit_entries VALUES (23, 1795727898497166, 'U0APPROVER', 'request.approved', '6ab39250ab166728', '{"approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "lapsed": [], "reason": "", "request_id": "8b2a37dbdd03", "state": "applying"}', '19134f6caf33c9f03a61497ad4b479582140e8ea067ce26733e45ea2a0457100', '3864514f48ba7fe70139262b7a701564b5ece873e85cc5f94821da18f17aec70');
INSERT INTO public.audit_entries VALUES (21, 1795727898213162, 'gatehouse', 'request.failed', '0d08ed89248759bb', '{"flow": "FW00000000000000000000000000000002", "reason": "No.", "request_id": "754f425a6362"}', 'b07366a91749bb3aff7322b78d489cf4379efbe8ae2a3582310d3cfece367dc0', 'aca0d8d6f139d0428dd1913cbad705d59861881674760c07ea3c10076d4d9b1d');
INSERT INTO public.audit_entries VALUES (22, 1795727898396545, 'U0OPERATOR', 'request.created', '6ab39250ab166728', '{"additions": ["+15550006", "+15550016"], "duration_seconds": 7776000, "end_changes": [], "flow": "FW00000000000000000000000000000002", "reason": "", "removals": [], "request_id": "a220476a41d9", "starts_at": null, "undo_of": null}', 'aca0d8d6f139d0428dd1913cbad705d59861881674760c07ea3c10076d4d9b1d', '19134f6caf33c9f03a61497ad4b479582140e8ea067ce26733e45ea2a0457100');
INSERT INTO public.audit_entries VALUES (24, 1795727898570685, 'gatehouse', 'flow.changed', 'FW00000000000000000000000000000002', '{"after": ["+15550006"], "before": [], "ended": [], "request_id": "8b2a37dbdd03", "requests": ["6ab39250ab166728"]}', '3864514f48ba7fe70139262b7a701564b5ece873e85cc5f94821da18f17aec70', 'a5878c12b1d300dd0ddbecb0da0ed77f97c14357133773dae528d5221a04a0c1');
INSERT INTO public.audit_entries VALUES (25, 1795727898570685, 'gatehouse', 'request.applied_in_part', '6ab39250ab166728', '{"additions": ["+15550006"], "already_gone": [], "already_there": [], "approvers": ["U0APPROVER"], "flow": "FW00000000000000000000000000000002", "outside_additions": [], "outside_removals": [], "removals": [], "request_id": "8b2a37dbdd03"}', 'a5878c12b1d300dd0ddbecb0da0ed77f97c14357133773dae528d5221a04a0c1', '24414d8c98f88c1a113938f78e43520f99b80ff86e8ad46d933aac6ae1d5e44f');
INSERT INTO public.audit_entries VALUES (26, 1795727902711637, 'gatehouse', 'request.failed', '6ab39250ab166728', '{"flow": "FW00000000000000000000000000000002", "reason": "The flow service stored a different list from the one I sent. Please check it.", "request_id": "8b2a37dbdd03"}', '24414d8c98f88c1a113938f78e43520f99b80ff86e8ad46d933aac6ae1d5e44f', '97d89f76617007472f83c2b2fec041ed846f9ba66fa0e46260f2a2bd26f5ba4f');
INSERT INTO public.audit_head VALUES (1, 26, '97d89f76617007472f83c2b2fec041ed846f9ba66fa0e46260f2a2bd26f5ba4f');
INSERT INTO public.cards VALUES ('request:bf69a55647c7e09d', 'C0APPROVALS', '1795727896.237004', '71cc6aa8a516d3d6914e8e89b3bd102efd54bd8b609d9c3fc33d7930f676274e', 1795727896239261);
INSERT INTO public.cards VALUES ('request:9cd0b0ef636a62f0', 'C0APPROVALS', '1795727896.326696', 'aed511f29cda1f2f95a69b7d2a3dacb478313d05cd970186314eeaad0e251392', 1795727896328675);
INSERT INTO public.cards VALUES ('request:aea77a9dc9a8b444', 'C0APPROVALS', '1795727896.415147', '3fdb2b693b15de649752019587013e6db37ec12c08556381feb95f584ea50cd2', 1795727896605008);
INSERT INTO public.cards VALUES ('request:7548484e71fd746e', 'C0APPROVALS', '1795727896.679721', 'f32c6e1d8554bcdebc19b2590161b037bc175b1a8e1ce80fca6132134f54f214', 1795727896824181);
INSERT INTO public.cards VALUES ('request:cd35728daace325e', 'C0APPROVALS', '1795727896.902174', '372f446695745fba840a26981a430ab1c011075fe922500bdadbdf3cef3156c3', 1795727897177907);
INSERT INTO public.cards VALUES ('request:0bdfac7cfb1fdf8a', 'C0APPROVALS', '1795727897.252441', '82dec804a2182c5d8e54bb8c9c2b67fc85b16b234cd0548d32a01c53891d0c73', 1795727897625296);
INSERT INTO public.cards VALUES ('request:acc83cc8310db9fb', 'C0APPROVALS', '1795727897.730877', '791b5a4096e8e05cfa4aa0a9e82f959fc70e402c0e4a49c506910713010523a1', 1795727897976645);
INSERT INTO public.cards VALUES ('testusers.failure:acc83cc8310db9fb:0', 'C0APPROVALS', '1795727897.978330', '2895bde462f5b297beb555288a98c74e0aedf509abcd19eaa3cfe2a29fed6fee', 1795727897986424);
INSERT INTO public.cards VALUES ('request:0d08ed89248759bb', 'C0APPROVALS', '1795727898.043798', '17f057adc2a34460286edcb2a00126fa519faa869f1641ad587d036f4e2f531b', 1795727898354746);
INSERT INTO public.cards VALUES ('testusers.failure:0d08ed89248759bb:0', 'C0APPROVALS', '1795727898.365294', '8e948a940c988500071d54e73e32ed46dce18fc62d38960acbfa6f44d3cd9d55', 1795727898368858);
INSERT INTO public.cards VALUES ('request:6ab39250ab166728', 'C0APPROVALS', '1795727898.444212', '04cfb95adf696110698013aabe849180039145ebc0122bf2d5dd4e22d369143c', 1795727902834578);
INSERT INTO public.cards VALUES ('testusers.failure:6ab39250ab166728:0', 'C0APPROVALS', '1795727902.854694', '427faab9531705cc06a42153fa7ff8b31b58c111c03f316265b6f03cc873c08e', 1795727902860799);
INSERT INTO public.cards VALUES ('incident:1', 'C0ALERTS', '1795727903.226299', '1c56cfa1ca4e2dce5ba8e2fcead8336474a2b322eec390e665d30612e4f7bd79', 1795727903228470);
INSERT INTO public.flow_changes VALUES (1, 'FW00000000000000000000000000000001', 1795727897055409, '{"additions": ["+15550007"], "removals": [], "request_ids": ["cd35728daace325e"], "ended": []}');
INSERT INTO public.flow_changes VALUES (2, 'FW00000000000000000000000000000001', 1795727897416130, '{"additions": ["+15550008"], "removals": [], "request_ids": ["0bdfac7cfb1fdf8a"], "ended": []}');
INSERT INTO public.flow_changes VALUES (3, 'FW00000000000000000000000000000002', 1795727898570685, '{"additions": ["+15550006"], "removals": [], "request_ids": ["6ab39250ab166728"], "ended": []}');
INSERT INTO public.grants VALUES ('FW00000000000000000000000000000001', '"+15550007"', 'FW00000000000000000000000000000001', 'cd35728daace325e', '{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}', '[{"slack_user_id": "U0APPROVER", "name": "Ada Approver"}]',1795727897055409,1795727897055409);
INSERT INTO public.grants VALUES ('FW00000000000000000000000000000001', '"+15550008"', 'FW00000000000000000000000000000001', '0bdfac7cfb1fdf8a', '{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}', '[{"slack_user_id": "U0APPROVER", "name": "Ada Approver"}]', 1795727897416130,4081355940000000);
INSERT INTO public.grants VALUES ('FW00000000000000000000000000000002', '"+15550006"', 'FW00000000000000000000000000000002', '6ab39250ab166728', '{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}', '[{"slack_user_id": "U0APPROVER", "name": "Ada Approver"}]', 1795727898570685,4081355940000000);
INSERT INTO public.incidents VALUES (1, 9, 44, 1795727903162042, NULL, 1, '{"own": {"minute": [1, 100], "day": [1, 1000], "concurrent": [1, 5]}, "words": "Your organization has been blocked for some time because it sent more than 100 requests in a minute.", "sent_code": 44, "is_foreign": true, "may_be_plan": false, "is_lowered": true, "clients": {}, "ended_because": ""}');
INSERT INTO public.jobs VALUES ('retain', 'retain', 'retain', '{}', 1795814296104692, 1, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('quota_tidy', 'quota_tidy', 'quota_tidy', '{}', 1795731496104692, 1, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('timer:bf69a55647c7e09d', 'testusers.timer', 'bf69a55647c7e09d', '{}', 1795727956185378, 1, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('timer:9cd0b0ef636a62f0', 'testusers.timer', '9cd0b0ef636a62f0', '{}', 1795727956290400, 1, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('timer:aea77a9dc9a8b444', 'testusers.timer', 'aea77a9dc9a8b444', '{}', 1795766400000000, 2, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('timer:7548484e71fd746e', 'testusers.timer', '7548484e71fd746e', '{}', 1795766400000000, 2, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('apply:FW00000000000000000000000000000001', 'testusers.apply', 'FW00000000000000000000000000000001', '{}', 1795727898000000, 2, 1, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('timer:cd35728daace325e', 'testusers.timer', 'cd35728daace325e', '{}', 1795983497055409, 2, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('timer:0bdfac7cfb1fdf8a', 'testusers.timer', '0bdfac7cfb1fdf8a', '{}', 1809205140000000, 2, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('timer:6ab39250ab166728', 'testusers.timer', '6ab39250ab166728', '{}', 1803500298570685, 2, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('probe:9', 'probe', 'eu/20077314', '{}', 1795727963162042, 1, 0, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('apply:FW00000000000000000000000000000002', 'testusers.apply', 'FW00000000000000000000000000000002', '{}', 1795727904301215, 2, 0, NULL, NULL, NULL);
INSERT INTO public.listings VALUES ('com', 1795727903103421, '[{"organization_id": "10234695", "name": "Northwind Traders", "contact_name": "Maria Anders", "email": "maria@10234695.example", "is_default_org": true, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2016-02-18", "time_zone": "PST", "is_org_active": true, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "10407630", "name": "Tailspin Toys", "contact_name": "John Smith", "email": "john@10407630.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2019-07-03", "time_zone": "PST", "is_org_active": true, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "10988211", "name": "\ud83c\udf35 Cactus & Co", "contact_name": "Ana Ruiz", "email": "ana@10988211.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2023-11-27", "time_zone": "PST", "is_org_active": true, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "10511902", "name": "Wingtip Archive", "contact_name": "Lee Gold", "email": "lee@10511902.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2014-05-30", "time_zone": "PST", "is_org_active": false, "currency_id": "460000000000097", "currency_code": "USD", "currency_symbol": "$", "currency_format": "###,##0.00", "price_precision": 2}]', '');
INSERT INTO public.listings VALUES ('in', 1795727903107616, '[{"organization_id": "60018842", "name": "Sundaram Textiles", "contact_name": "Priya Nair", "email": "priya@60018842.example", "is_default_org": true, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2015-08-12", "time_zone": "IST", "is_org_active": true, "currency_id": "460000000000103", "currency_code": "INR", "currency_symbol": "\u20b9", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "60020957", "name": "Ganges Spice Exports", "contact_name": "Ravi Kumar", "email": "ravi@60020957.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2020-12-01", "time_zone": "IST", "is_org_active": true, "currency_id": "460000000000103", "currency_code": "INR", "currency_symbol": "\u20b9", "currency_format": "###,##0.00", "price_precision": 2}]', '');
INSERT INTO public.listings VALUES ('com.au', 1795727903108027, '[{"organization_id": "70003391", "name": "Southern Cross Surfboards", "contact_name": "Mia O''Brien", "email": "mia@70003391.example", "is_default_org": true, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2018-04-04", "time_zone": "AEST", "is_org_active": true, "currency_id": "460000000000105", "currency_code": "AUD", "currency_symbol": "A$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "70003977", "name": "Outback *Tools* _Hire_", "contact_name": "Jack Walsh", "email": "jack@70003977.example", "is_default_org": false, "language_code": "en", "fiscal_year_start_month": 0, "account_created_date": "2013-09-19", "time_zone": "AEST", "is_org_active": false, "currency_id": "460000000000105", "currency_code": "AUD", "currency_symbol": "A$", "currency_format": "###,##0.00", "price_precision": 2}]', '');
INSERT INTO public.listings VALUES ('eu', 1795727903108130, '[{"organization_id": "20077314", "name": "M\u00fcller & S\u00f6hne <Berlin>", "contact_name": "J\u00f6rg M\u00fcller", "email": "joerg@20077314.example", "is_default_org": true, "language_code": "de", "fiscal_year_start_month": 0, "account_created_date": "2017-01-09", "time_zone": "CET", "is_org_active": true, "currency_id": "460000000000099", "currency_code": "EUR", "currency_symbol": "\u20ac", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "20077315", "name": "Northwind Traders", "contact_name": "Hanna Moos", "email": "hanna@20077315.example", "is_default_org": false, "language_code": "de", "fiscal_year_start_month": 0, "account_created_date": "2018-10-22", "time_zone": "CET", "is_org_active": true, "currency_id": "460000000000099", "currency_code": "EUR", "currency_symbol": "\u20ac", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "20145880", "name": "Caf\u00e9 Zo\u00eb", "contact_name": "Zo\u00eb Laurent", "email": "zoe@20145880.example", "is_default_org": false, "language_code": "de", "fiscal_year_start_month": 0, "account_created_date": "2021-03-15", "time_zone": "CET", "is_org_active": true, "currency_id": "460000000000099", "currency_code": "EUR", "currency_symbol": "\u20ac", "currency_format": "###,##0.00", "price_precision": 2}]', '');
INSERT INTO public.listings VALUES ('jp', 1795727903113948, '[{"organization_id": "80004410", "name": "\u685c\u4e95\u88fd\u4f5c\u6240", "contact_name": "\u685c\u4e95 \u5065", "email": "ken@80004410.example", "is_default_org": true, "language_code": "ja", "fiscal_year_start_month": 0, "account_created_date": "2019-02-28", "time_zone": "JST", "is_org_active": true, "currency_id": "460000000000107", "currency_code": "JPY", "currency_symbol": "\u00a5", "currency_format": "###,##0.00", "price_precision": 0}, {"organization_id": "80004655", "name": "Kyoto Paper Works", "contact_name": "Yui Tanaka", "email": "yui@80004655.example", "is_default_org": false, "language_code": "ja", "fiscal_year_start_month": 0, "account_created_date": "2022-06-16", "time_zone": "JST", "is_org_active": true, "currency_id": "460000000000107", "currency_code": "JPY", "currency_symbol": "\u00a5", "currency_format": "###,##0.00", "price_precision": 0}]', '');
INSERT INTO public.listings VALUES ('sa', 1795727903127860, '[{"organization_id": "30002218", "name": "\u0634\u0631\u0643\u0629 \u0627\u0644\u0646\u062e\u064a\u0644 \u0627\u0644\u062a\u062c\u0627\u0631\u064a\u0629", "contact_name": "\u0646\u0648\u0631\u0629 \u0627\u0644\u0639\u062a\u064a\u0628\u064a", "email": "noura@30002218.example", "is_default_org": true, "language_code": "ar", "fiscal_year_start_month": 0, "account_created_date": "2021-05-05", "time_zone": "AST", "is_org_active": true, "currency_id": "460000000000113", "currency_code": "SAR", "currency_symbol": "\u0631.\u0633", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "30002290", "name": "Red Sea Logistics", "contact_name": "Omar Saleh", "email": "omar@30002290.example", "is_default_org": false, "language_code": "ar", "fiscal_year_start_month": 0, "account_created_date": "2024-02-14", "time_zone": "AST", "is_org_active": true, "currency_id": "460000000000113", "currency_code": "SAR", "currency_symbol": "\u0631.\u0633", "currency_format": "###,##0.00", "price_precision": 2}]', '');
INSERT INTO public.listings VALUES ('com.cn', 1795727903128197, '[{"organization_id": "50006120", "name": "\u4e0a\u6d77\u6668\u5149\u8d38\u6613\u6709\u9650\u516c\u53f8", "contact_name": "\u738b \u82b3", "email": "fang@50006120.example", "is_default_org": true, "language_code": "zh", "fiscal_year_start_month": 0, "account_created_date": "2018-11-11", "time_zone": "CST", "is_org_active": true, "currency_id": "460000000000111", "currency_code": "CNY", "currency_symbol": "CN\u00a5", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "50006544", "name": "Lotus Electronics", "contact_name": "Li Wei", "email": "wei@50006544.example", "is_default_org": false, "language_code": "zh", "fiscal_year_start_month": 0, "account_created_date": "2012-03-07", "time_zone": "CST", "is_org_active": false, "currency_id": "460000000000111", "currency_code": "CNY", "currency_symbol": "CN\u00a5", "currency_format": "###,##0.00", "price_precision": 2}]', '');
INSERT INTO public.listings VALUES ('ca', 1795727903132745, '[{"organization_id": "90001276", "name": "Maple <Leaf> Outdoors", "contact_name": "Chlo\u00e9 Tremblay", "email": "chloe@90001276.example", "is_default_org": true, "language_code": "fr", "fiscal_year_start_month": 0, "account_created_date": "2020-01-31", "time_zone": "EST", "is_org_active": true, "currency_id": "460000000000109", "currency_code": "CAD", "currency_symbol": "CA$", "currency_format": "###,##0.00", "price_precision": 2}, {"organization_id": "90001301", "name": "Hudson & Daughters", "contact_name": "Emma Roy", "email": "emma@90001301.example", "is_default_org": false, "language_code": "fr", "fiscal_year_start_month": 0, "account_created_date": "2021-08-25", "time_zone": "EST", "is_org_active": true, "currency_id": "460000000000109", "currency_code": "CAD", "currency_symbol": "CA$", "currency_format": "###,##0.00", "price_precision": 2}]', '');
INSERT INTO public.outbox_messages VALUES (1, 'request:bf69a55647c7e09d', 'testusers.card', 'bf69a55647c7e09d', '{}', 1795727896185378, 1, 1795727896239261, NULL);
INSERT INTO public.outbox_messages VALUES (25, 'requester:0d08ed89248759bb', 'testusers.outcome', '0d08ed89248759bb', '{"event": "failed", "reason": "No."}', 1795727898213162, 0, 1795727898350392, NULL);
INSERT INTO public.outbox_messages VALUES (2, 'request:9cd0b0ef636a62f0', 'testusers.card', '9cd0b0ef636a62f0', '{}', 1795727896290400, 1, 1795727896328675, NULL);
INSERT INTO public.outbox_messages VALUES (24, 'request:0d08ed89248759bb', 'testusers.card', '0d08ed89248759bb', '{}', 1795727898213162, 0, 1795727898354746, NULL);
INSERT INTO public.outbox_messages VALUES (3, 'request:aea77a9dc9a8b444', 'testusers.card', 'aea77a9dc9a8b444', '{}', 1795727896381276, 1, 1795727896417314, NULL);
INSERT INTO public.outbox_messages VALUES (4, 'request:aea77a9dc9a8b444', 'testusers.card', 'aea77a9dc9a8b444', '{}', 1795727896484402, 0, 1795727896605008, NULL);
INSERT INTO public.outbox_messages VALUES (5, 'requester:aea77a9dc9a8b444', 'testusers.outcome', 'aea77a9dc9a8b444', '{"event": "scheduled"}', 1795727896484402, 0, 1795727896616700, NULL);
INSERT INTO public.outbox_messages VALUES (26, 'testusers.failure:0d08ed89248759bb:0', 'testusers.failure', '0d08ed89248759bb', '{}', 1795727898213162, 1, 1795727898368858, NULL);
INSERT INTO public.outbox_messages VALUES (6, 'request:7548484e71fd746e', 'testusers.card', '7548484e71fd746e', '{}', 1795727896640990, 1, 1795727896681438, NULL);
INSERT INTO public.outbox_messages VALUES (8, 'requester:7548484e71fd746e', 'testusers.outcome', '7548484e71fd746e', '{"event": "scheduled"}', 1795727896729262, 0, 1795727896819969, NULL);
INSERT INTO public.outbox_messages VALUES (7, 'request:7548484e71fd746e', 'testusers.card', '7548484e71fd746e', '{}', 1795727896729262, 0, 1795727896824181, NULL);
INSERT INTO public.outbox_messages VALUES (9, 'request:cd35728daace325e', 'testusers.card', 'cd35728daace325e', '{}', 1795727896856879, 1, 1795727896904150, NULL);
INSERT INTO public.outbox_messages VALUES (10, 'request:cd35728daace325e', 'testusers.card', 'cd35728daace325e', '{}', 1795727896958083, 0, 1795727897074740, NULL);
INSERT INTO public.outbox_messages VALUES (12, 'requester:cd35728daace325e', 'testusers.outcome', 'cd35728daace325e', '{"event": "applied"}', 1795727897055409, 0, 1795727897162501, NULL);
INSERT INTO public.outbox_messages VALUES (11, 'request:cd35728daace325e', 'testusers.card', 'cd35728daace325e', '{}', 1795727897055409, 0, 1795727897177907, NULL);
INSERT INTO public.outbox_messages VALUES (13, 'request:0bdfac7cfb1fdf8a', 'testusers.card', '0bdfac7cfb1fdf8a', '{}', 1795727897200738, 1, 1795727897255157, NULL);
INSERT INTO public.outbox_messages VALUES (14, 'request:0bdfac7cfb1fdf8a', 'testusers.card', '0bdfac7cfb1fdf8a', '{}', 1795727897309958, 0, 1795727897417860, NULL);
INSERT INTO public.outbox_messages VALUES (16, 'requester:0bdfac7cfb1fdf8a', 'testusers.outcome', '0bdfac7cfb1fdf8a', '{"event": "applied"}', 1795727897416130, 0, 1795727897617842, NULL);
INSERT INTO public.outbox_messages VALUES (15, 'request:0bdfac7cfb1fdf8a', 'testusers.card', '0bdfac7cfb1fdf8a', '{}', 1795727897416130, 0, 1795727897625296, NULL);
INSERT INTO public.outbox_messages VALUES (27, 'request:6ab39250ab166728', 'testusers.card', '6ab39250ab166728', '{}', 1795727898396545, 1, 1795727898446943, NULL);
INSERT INTO public.outbox_messages VALUES (17, 'request:acc83cc8310db9fb', 'testusers.card', 'acc83cc8310db9fb', '{}', 1795727897686715, 1, 1795727897733411, NULL);
INSERT INTO public.outbox_messages VALUES (18, 'request:acc83cc8310db9fb', 'testusers.card', 'acc83cc8310db9fb', '{}', 1795727897777795, 0, 1795727897850075, NULL);
INSERT INTO public.outbox_messages VALUES (20, 'requester:acc83cc8310db9fb', 'testusers.outcome', 'acc83cc8310db9fb', '{"event": "failed", "reason": "No."}', 1795727897841339, 0, 1795727897970186, NULL);
INSERT INTO public.outbox_messages VALUES (19, 'request:acc83cc8310db9fb', 'testusers.card', 'acc83cc8310db9fb', '{}', 1795727897841339, 0, 1795727897976645, NULL);
INSERT INTO public.outbox_messages VALUES (21, 'testusers.failure:acc83cc8310db9fb:0', 'testusers.failure', 'acc83cc8310db9fb', '{}', 1795727897841339, 1, 1795727897986424, NULL);
INSERT INTO public.outbox_messages VALUES (28, 'request:6ab39250ab166728', 'testusers.card', '6ab39250ab166728', '{}', 1795727898497166, 0, 1795727898575199, NULL);
INSERT INTO public.outbox_messages VALUES (22, 'request:0d08ed89248759bb', 'testusers.card', '0d08ed89248759bb', '{}', 1795727898014205, 1, 1795727898045458, NULL);
INSERT INTO public.outbox_messages VALUES (23, 'request:0d08ed89248759bb', 'testusers.card', '0d08ed89248759bb', '{}', 1795727898118505, 0, 1795727898212996, NULL);
INSERT INTO public.outbox_messages VALUES (29, 'request:6ab39250ab166728', 'testusers.card', '6ab39250ab166728', '{}', 1795727898570685, 0, 1795727898670131, NULL);
INSERT INTO public.outbox_messages VALUES (30, 'request:6ab39250ab166728', 'testusers.card', '6ab39250ab166728', '{}', 1795727898603913, 0, 1795727898695329, NULL);
INSERT INTO public.outbox_messages VALUES (31, 'request:6ab39250ab166728', 'testusers.card', '6ab39250ab166728', '{}', 1795727899656808, 0, 1795727899743964, NULL);
INSERT INTO public.outbox_messages VALUES (33, 'requester:6ab39250ab166728', 'testusers.outcome', '6ab39250ab166728', '{"event": "failed", "reason": "The flow service stored a different list from the one I sent. Please check it."}', 1795727902711637, 0, 1795727902819345, NULL);
INSERT INTO public.outbox_messages VALUES (32, 'request:6ab39250ab166728', 'testusers.card', '6ab39250ab166728', '{}', 1795727902711637, 0, 1795727902834578, NULL);
INSERT INTO public.outbox_messages VALUES (34, 'testusers.failure:6ab39250ab166728:0', 'testusers.failure', '6ab39250ab166728', '{}', 1795727902711637, 1, 1795727902860799, NULL);
INSERT INTO public.outbox_messages VALUES (35, 'incident:1', 'incident_card', '1', '{}', 1795727903187056, 1, 1795727903228470, NULL);
INSERT INTO public.presets VALUES ('demo', '["+15550100", "+15550101"]', '{"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}', 1795727897656045);
INSERT INTO public.quota_calls VALUES (3, 1, 1795727903012615, 1795727963115581, 1795727903073665, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (1, 1, 1795727903013908, 1795727963131903, 1795727903087467, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (4, 1, 1795727903022521, 1795727963133112, 1795727903089691, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (2, 1, 1795727903025719, 1795727963133491, 1795727903090948, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (5, 1, 1795727903027020, 1795727963134673, 1795727903094291, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (6, 1, 1795727903063040, 1795727963150694, 1795727903105228, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (7, 1, 1795727903067127, 1795727963151565, 1795727903106496, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (8, 1, 1795727903077289, 1795727963160772, 1795727903119790, 'list', 'U0OPERATOR');
INSERT INTO public.quota_calls VALUES (9, 1, 1795727903155505, 1795727963212823, 1795727903190820, 'check', 'U0OPERATOR');
INSERT INTO public.quota_organizations VALUES (1, 'in', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (3, 'com', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (2, 'eu', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (4, 'com.au', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (5, 'jp', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (6, 'sa', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (7, 'com.cn', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (8, 'ca', '', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.quota_organizations VALUES (9, 'eu', '20077314', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[{"code": 44, "since": 1795727903.1620421, "until": 1795727963.1620421, "failed_tries": 0}]', 0, 0, 0, NULL, NULL, NULL, 4, 1795731503162042);
INSERT INTO public.received_events VALUES ('signature:355eb8c58e3abefe24b01b95eeca3a04ab5d0b344e7aff0165c11a95f1cbc5ab', 1795727896160874, 1795727896160874);
INSERT INTO public.received_events VALUES ('signature:25e9b0cb98520a45f41e3a4fce3e76b9db48c18fd8e26fdafa4949b2ccfb78f6', 1795727896274894, 1795727896274894);
INSERT INTO public.received_events VALUES ('signature:d4fb2c846ca65e1332b2cb6197eb367b5e987db2b153a2247f40b270672e2aaa', 1795727896367439, 1795727896367439);
INSERT INTO public.received_events VALUES ('signature:c052172160123ea5d912eba1bf7fea6f2593e3ebc3078bfb691f8e5122305117', 1795727896466835, 1795727896466835);
INSERT INTO public.received_events VALUES ('signature:a25f493b8904b6b9b6e691cfa678026b769acdf4c5c6fd6b7e07295dcca60d91', 1795727896612236, 1795727896612236);
INSERT INTO public.received_events VALUES ('signature:344f986a37200ae144247e3e1428cb1d82c96db12e31863e33665ac0d7bf5974', 1795727896717383, 1795727896717383);
INSERT INTO public.received_events VALUES ('signature:c5457b3ab1982e97e3fa6f0b218af10fb8af6a583cd8b171803b882c2a4510a8', 1795727896830495, 1795727896830495);
INSERT INTO public.received_events VALUES ('signature:5164ba89f7c5a586aebb9e1525e31f88ec8a44466eae5fc4084bcfa1022175d0', 1795727896945531, 1795727896945531);
INSERT INTO public.received_events VALUES ('signature:246f9ccf55c226ff4added0c686ec62e64c2f1b648005de01350066e7a6e8548', 1795727897182790, 1795727897182790);
INSERT INTO public.received_events VALUES ('signature:cd32a9c853f07442ee2c3a97b1a023e0186419b432a56aedec0073f4f1f62e6c', 1795727897294946, 1795727897294946);
INSERT INTO public.received_events VALUES ('signature:b99c68f8bf767dce74e20f9bd639f2a4fe96e75da9f60c632f6620dddfa44d73', 1795727897631367, 1795727897631367);
INSERT INTO public.received_events VALUES ('signature:a2d929b8abd063f9ef52c16dbc1df41c0bb277c0c2b91bf3ba3e123f5e0c650f', 1795727897669548, 1795727897669548);
INSERT INTO public.received_events VALUES ('signature:5f65f2e7c87c78c546814929ea34d6aa6b165efc61710f3019e85c8f12e65f96', 1795727897764423, 1795727897764423);
INSERT INTO public.received_events VALUES ('signature:dd408ab1bb06eaf06706f5cc2e17a377f880e8ce1cb02b999c3a9c5dcd4d878d', 1795727897983618, 1795727897983618);
INSERT INTO public.received_events VALUES ('signature:754f425a6362d03048b10276de19d302e2205075000b27beebe65d568f555b0b', 1795727898102410, 1795727898102410);
INSERT INTO public.received_events VALUES ('signature:a220476a41d9ce391df7e5980fc0b6f02b083e0ca4b6d86fc4207c0ffbe32b67', 1795727898363128, 1795727898363128);
INSERT INTO public.received_events VALUES ('signature:8b2a37dbdd034d7f94efa8613d0d31eb800806b7549565d9141cdefed1505fdc', 1795727898482683, 1795727898482683);
INSERT INTO public.received_events VALUES ('signature:a55f3931fa87d7f855d3d519555636ee6c32a3fd123a4c15c9280da7c0756495', 1795727902848991, 1795727902848991);
INSERT INTO public.requests VALUES ('bf69a55647c7e09d', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'pending', 2, 1795727896185378, 4083955200000000, NULL, NULL, NULL, '{"change": {"additions": ["+15550001"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}', '{"approvals": [], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('9cd0b0ef636a62f0', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'pending', 2, 1795727896290400, 4083955200000000, NULL, NULL, NULL, '{"change": {"additions": ["+15550002"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2099-01-05T09:00:00Z", "shown_at": null}', '{"approvals": [], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('cd35728daace325e', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'applied', 4, 1795727896856879, 1795814296856879, 'U0APPROVER', 'Ada Approver', 1795727896958083, '{"change": {"additions": ["+15550007"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 259200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}', '{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:16.958083Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": {"at": "2026-11-26T21:18:17.055409Z", "change": {"additions": ["+15550007"], "removals": []}, "already": {"additions": [], "removals": []}, "outside": {"additions": [], "removals": []}, "size_before": 1, "size_after": 2, "ends_at": {"+15550007": "2026-11-29T21:18:17.055409Z"}, "previous_ends": {}}, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "5164ba89f7c5", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('0d08ed89248759bb', 'FW00000000000000000000000000000002', 'FW00000000000000000000000000000002', 'survey', 'U0OPERATOR', 'Otto Operator', 'applying', 4, 1795727898014205, 1795814298014205, 'U0APPROVER', 'Ada Approver', 1795727898118505, '{"change": {"additions": ["+15550009"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 259200000, "ends": {}, "reason": "test 9", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2026-01-05T09:00:00Z", "shown_at": null}', '{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:18.118505Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "754f425a6362", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('aea77a9dc9a8b444', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'scheduled', 3, 1795727896381276, 4083955200000000, 'U0APPROVER', 'Ada Approver', 1795727896484402, '{"change": {"additions": ["+15550003"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 172800, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2099-01-05T09:00:00Z", "shown_at": null}', '{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:16.484402Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "c05217216012", "news": [], "rung": ["remind"], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('7548484e71fd746e', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'scheduled', 3, 1795727896640990, 4083955200000000, 'U0APPROVER', 'Ada Approver', 1795727896729262, '{"change": {"additions": ["+15550004"], "removals": []}, "seen": ["+15550100001"], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7200, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2026-01-05T09:00:00Z", "shown_at": null}', '{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:16.729262Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "344f986a3720", "news": [], "rung": ["remind"], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('0bdfac7cfb1fdf8a', 'FW00000000000000000000000000000001', 'FW00000000000000000000000000000001', 'welcome', 'U0OPERATOR', 'Otto Operator', 'applied', 4, 1795727897200738, 1795814297200738, 'U0APPROVER', 'Ada Approver', 1795727897309958, '{"change": {"additions": ["+15550008"], "removals": []}, "seen": [], "seen_change_id": 1, "end_changes": [], "duration_seconds": null, "ends": {"+15550008": "2099-05-01T21:59:00Z"}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}', '{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:17.309958Z"}], "denial_reason": "", "failure": "", "is_unsure": false, "tries": 0, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": {"at": "2026-11-26T21:18:17.416130Z", "change": {"additions": ["+15550008"], "removals": []}, "already": {"additions": [], "removals": []}, "outside": {"additions": [], "removals": []}, "size_before": 2, "size_after": 3, "ends_at": {"+15550008": "2099-05-01T21:59:00Z"}, "previous_ends": {}}, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "cd32a9c853f0", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('acc83cc8310db9fb', 'FW00000000000000000000000000000002', 'FW00000000000000000000000000000002', 'survey', 'U0OPERATOR', 'Otto Operator', 'failed', 4, 1795727897686715, 1795814297686715, 'U0APPROVER', 'Ada Approver', 1795727897777795, '{"change": {"additions": ["+15550005"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 259200000, "ends": {}, "reason": "test 5", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": "2026-01-05T09:00:00Z", "shown_at": null}', '{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:17.777795Z"}], "denial_reason": "", "failure": "No.", "is_unsure": false, "tries": 3, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": null, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "5f65f2e7c87c", "news": [], "rung": [], "rule": null, "announced_until": null}');
INSERT INTO public.requests VALUES ('6ab39250ab166728', 'FW00000000000000000000000000000002', 'FW00000000000000000000000000000002', 'survey', 'U0OPERATOR', 'Otto Operator', 'failed', 7, 1795727898396545, 1795814298396545, 'U0APPROVER', 'Ada Approver', 1795727898497166, '{"change": {"additions": ["+15550006", "+15550016"], "removals": []}, "seen": [], "seen_change_id": 0, "end_changes": [], "duration_seconds": 7776000, "ends": {}, "reason": "", "without_approval": false, "undo_of": null, "current_ends": {}, "starts_at": null, "shown_at": null}', '{"approvals": [{"who": {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}, "at": "2026-11-26T21:18:18.497166Z"}], "denial_reason": "", "failure": "The flow service stored a different list from the one I sent. Please check it.", "is_unsure": false, "tries": 3, "retry_at": null, "retries": [], "retried_by": null, "respelled": {}, "part": {"at": "2026-11-26T21:18:18.570685Z", "change": {"additions": ["+15550006"], "removals": []}, "already": {"additions": [], "removals": []}, "outside": {"additions": [], "removals": []}, "size_before": 0, "size_after": 1, "ends_at": {"+15550006": "2099-05-01T21:59:00Z"}, "previous_ends": {}}, "done": null, "ended": [], "superseded": [], "overdue": "", "undone_by": null, "is_undone": false, "delivery_id": "8b2a37dbdd03", "news": [], "rung": [], "rule": null, "announced_until": null}');
SELECT pg_catalog.setval('public.flow_changes_id_seq', 3, true);
SELECT pg_catalog.setval('public.incidents_id_seq', 1, true);
SELECT pg_catalog.setval('public.outbox_messages_id_seq', 35, true);
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
ALTER TABLE ONLY public.grants
    ADD CONSTRAINT pk_grants PRIMARY KEY (flow_key, identity);
ALTER TABLE ONLY public.home_views
    ADD CONSTRAINT pk_home_views PRIMARY KEY (slack_user_id);
ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT pk_incidents PRIMARY KEY (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT pk_jobs PRIMARY KEY (key);
ALTER TABLE ONLY public.listings
    ADD CONSTRAINT pk_listings PRIMARY KEY (data_center);
ALTER TABLE ONLY public.outbox_messages
    ADD CONSTRAINT pk_outbox_messages PRIMARY KEY (id);
ALTER TABLE ONLY public.presets
    ADD CONSTRAINT pk_presets PRIMARY KEY (name);
ALTER TABLE ONLY public.quota_calls
    ADD CONSTRAINT pk_quota_calls PRIMARY KEY (organization, number);
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
CREATE INDEX ix_received_events_received_at ON public.received_events USING btree (received_at);
CREATE INDEX ix_requests_flow_key_created_at ON public.requests USING btree (flow_key, created_at);
CREATE INDEX ix_requests_state_flow_key ON public.requests USING btree (state, flow_key);
