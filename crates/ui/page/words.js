// Words for what is shown. Text from files, models and other programs passes `visible`, so that nothing in it hides or
// reorders other characters.

const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u00a0\\u00ad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f" +
    "\\u2000-\\u200c\\u200e\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0d\\ufeff\\uffa0\\ufff0-\\ufffb" +
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\ud800-\\udfff]",
  "gu",
);

const spell = (character) => `<U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;

const PLAIN = /^[\x20-\x7e]*$/;

// Several lines: keeps line breaks and tabs.
export function visible(text) {
  const whole = String(text);
  // Most of what is shown, and a map has thousands of cells.
  if (PLAIN.test(whole)) return whole;
  return whole.replaceAll("\r\n", "\n").replaceAll("\r", "<U+000D>").replace(HIDDEN, spell);
}

// One line, such as a name.
export const oneLine = (text) => visible(text).replaceAll("\n", "<U+000A>").replaceAll("\t", "<U+0009>");

export function cut(text, most) {
  const characters = [...text.slice(0, most * 2)];
  return text.length > most ? `${characters.slice(0, most).join("")} … (${figure(text.length - most)} more characters)` : text;
}

export const figure = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

export const count = (number, one, many = `${one}s`) => `${figure(number)} ${number === 1 ? one : many}`;

export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

// A time that is left, in whole minutes.
export function span(ms) {
  const minutes = Math.ceil(ms / 60_000);
  if (minutes < 2) return "less than a minute";
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

// Written out, because the first formatter of the browser takes longer than the rest of the page.
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const time = (date) => [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");

const day = (date) => `${date.getDate()} ${MONTHS[date.getMonth()]}`;

export function clock(ms) {
  const date = new Date(ms);
  return Date.now() - ms > 20 * 3600 * 1000 ? `${day(date)} ${time(date).slice(0, 5)}` : time(date);
}

export function exact(ms) {
  const date = new Date(ms);
  return `${day(date)} ${date.getFullYear()}, ${time(date)}`;
}

export const size = (bytes) => (bytes < 1000 ? count(bytes, "byte") : `${(bytes / 1000).toFixed(1)} kB`);

export function tokens(number) {
  if (number < 1000) return String(number);
  return number < 1e6 ? `${(number / 1000).toFixed(1)}k` : `${(number / 1e6).toFixed(2)}M`;
}

// The kinds of the timeline: a sign that differs in shape, a word for one entry, and a word for the filter.
export const KINDS = {
  read: { sign: "○", one: "read", many: "Reads" },
  change: { sign: "■", one: "edit", many: "Edits" },
  repair: { sign: "✚", one: "repair", many: "Repairs" },
  refusal: { sign: "✕", one: "refused", many: "Refusals" },
  outside: { sign: "▲", one: "outside", many: "Outside changes" },
  rescue: { sign: "◆", one: "rescued", many: "Rescues" },
  checkpoint: { sign: "⚑", one: "checkpoint", many: "Checkpoints" },
  undo: { sign: "↶", one: "undo", many: "Undos" },
  restore: { sign: "⟲", one: "restore", many: "Restores" },
};

export const kindOf = (entry) => (entry.kind === "change" && entry.repairs ? "repair" : entry.kind);

const WHY = {
  unread: "it had not been read",
  stale: "it had changed since it was read",
  deleted: "it was gone",
  partial: "it had not been read as a whole",
  not_found: "the text was not there",
};

function happened(file) {
  if (file.moved_to) return `${file.path} moved to ${file.moved_to}`;
  if (file.before === file.after) return `${file.path} as before`;
  if (!file.before) return `${file.path} created`;
  return file.after ? file.path : `${file.path} deleted`;
}

// An entry in a line.
export function what(entry) {
  switch (entry.kind) {
    case "read":
      return entry.seen_lines < entry.total_lines ? `${entry.path}, ${entry.seen_lines} of ${count(entry.total_lines, "line")}` : entry.path;
    case "checkpoint":
      return `${entry.name ?? entry.occasion}: ${count(entry.files, "file")} not as committed`;
    case "refusal": {
      const why = WHY[entry.code] ?? entry.code.replaceAll("_", " ");
      const again = entry.repeat > 1 ? `, ${entry.repeat} times in a row` : "";
      return `${entry.path ?? entry.tool}: ${why}${again}`;
    }
    case "outside":
      return `${entry.path} ${!entry.after ? "deleted" : entry.before ? "changed" : "created"} by another program`;
    case "rescue":
      if (entry.dropped) return `${entry.path ?? "a file"}, applied or dropped`;
      return `${size(entry.size)} that another program wrote to ${entry.path ?? "a file"} while it was replaced`;
    default: {
      const [first, ...rest] = entry.files;
      const command = entry.tool.startsWith("command: ") ? ` by ${entry.tool}` : "";
      const undone = entry.undone ? " (undone)" : "";
      return `${first ? happened(first) : entry.tool}${rest.length ? ` and ${count(rest.length, "other file")}` : ""}${command}${undone}`;
    }
  }
}

export const paths = (entry) => entry.files?.flatMap?.((file) => [file.path, file.moved_to].filter(Boolean)) ?? [entry.path].filter(Boolean);
