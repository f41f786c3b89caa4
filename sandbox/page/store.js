// The page's data: the loaded state, the acting person and the open channel.

export const store = {
  people: [],
  commands: [],
  shortcuts: [],
  me: null,
  channel: "C0GENERAL",
  thread: null,
  newSince: null, // the number of the last message that was seen when this channel was opened
  screen: { channels: [], messages: [], modal: null, bot: "starting" },
};

const read = new Map();

/** The acting person. */
export const self = () => store.people.find((person) => person.id === store.me);

/** The name of a person, a channel or a group by id. */
export const personName = (id) => store.people.find((person) => person.id === id)?.name;
export const channelName = (id) => store.screen.channels.find((one) => one.id === id)?.name;

/** The messages of a channel, without the replies in threads. */
export const topLevel = (channel) =>
  store.screen.messages.filter(
    (m) => m.channel === channel && (!m.thread_ts || m.thread_ts === m.ts),
  );

/** The replies under a message. */
export const replies = (channel, ts) =>
  store.screen.messages.filter((m) => m.channel === channel && m.thread_ts === ts && m.ts !== ts);

const place = (channel) => `${store.me} ${channel}`;

/** Mark everything in a channel as seen. */
export function markRead(channel) {
  const all = store.screen.messages.filter((m) => m.channel === channel);
  read.set(place(channel), Math.max(0, ...all.map((m) => m.number)));
}

/** Remember where the unread messages begin in the channel that is being opened. */
export function markNew(channel) {
  store.newSince = unread(channel) ? (read.get(place(channel)) ?? 0) : null;
}

/** The number of unread messages in a channel, without replies and ephemeral messages. */
export function unread(channel) {
  const seen = read.get(place(channel)) ?? 0;
  return topLevel(channel).filter(
    (m) => m.number > seen && !m.ephemeral && m.author.id !== store.me,
  ).length;
}
