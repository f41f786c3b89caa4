// The emoji that bots use by name. An unknown name stays as it was written.

const NAMES = `
white_check_mark ✅ heavy_check_mark ✔️ ballot_box_with_check ☑️ x ❌ negative_squared_cross_mark ❎ no_entry ⛔
no_entry_sign 🚫 warning ⚠️ rotating_light 🚨 bell 🔔 no_bell 🔕 hourglass ⌛ hourglass_flowing_sand ⏳
stopwatch ⏱️ alarm_clock ⏰ clock1 🕐 calendar 📅 date 📅 lock 🔒 unlock 🔓 key 🔑 closed_lock_with_key 🔐
red_circle 🔴 large_yellow_circle 🟡 large_green_circle 🟢 large_orange_circle 🟠 large_blue_circle 🔵
white_circle ⚪ black_circle ⚫ large_green_square 🟩 large_yellow_square 🟨 large_red_square 🟥 white_large_square ⬜
bar_chart 📊 chart_with_upwards_trend 📈 chart_with_downwards_trend 📉 office 🏢 globe_with_meridians 🌐 earth_africa 🌍
bust_in_silhouette 👤 busts_in_silhouette 👥 wave 👋 eyes 👀 thumbsup 👍 thumbsdown 👎 +1 👍 -1 👎 raised_hand ✋
bulb 💡 information_source ℹ️ question ❓ grey_question ❔ exclamation ❗ speech_balloon 💬 email ✉️ envelope ✉️
mailbox 📫 inbox_tray 📥 outbox_tray 📤 memo 📝 clipboard 📋 pushpin 📌 link 🔗 mag 🔍 wrench 🔧 gear ⚙️ hammer_and_wrench 🛠️
arrows_counterclockwise 🔄 repeat 🔁 leftwards_arrow_with_hook ↩️ arrow_right ➡️ arrow_left ⬅️ arrow_up ⬆️ arrow_down ⬇️
heavy_plus_sign ➕ heavy_minus_sign ➖ wastebasket 🗑️ rocket 🚀 tada 🎉 sparkles ✨ star ⭐ fire 🔥 zap ⚡ snowflake ❄️
robot_face 🤖 ghost 👻 construction 🚧 traffic_light 🚦 vertical_traffic_light 🚦 shield 🛡️ scroll 📜 ledger 📒 books 📚
package 📦 card_index_dividers 🗂️ test_tube 🧪 woman-shrugging 🤷 zzz 💤 double_vertical_bar ⏸️ black_square_for_stop ⏹️
`
  .trim()
  .split(/\s+/);

const BY_NAME = new Map();
for (let i = 0; i < NAMES.length; i += 2) BY_NAME.set(NAMES[i], NAMES[i + 1]);

/** The character of an emoji, undefined when its name is not known. */
export const emoji = (name) => BY_NAME.get(name);
