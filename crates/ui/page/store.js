// What the page knows of the workspace: read once, then kept current by the feed of the server.

let token = "";

export const store = {
  revision: 0,
  workspace: "",
  version: "",
  readOnly: false,
  state: null,
  rescues: [],
  sessions: new Map(),
  order: [],
  // Newest first.
  entries: [],
  total: 0,
  connection: "connecting",
  trouble: "",
};

const listeners = new Set();

// Calls back after each change, with the names of what has changed.
export function listen(act) {
  listeners.add(act);
  return () => listeners.delete(act);
}

const tell = (...changed) => listeners.forEach((act) => act(new Set(changed)));

export class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

const tokenOf = (hash) => /^#token=([\w-]+)$/.exec(hash)?.[1];

// Takes the token out of the address, where it would stay in the history.
export function takeToken() {
  const found = tokenOf(location.hash);
  if (!found) return;
  sessionStorage.setItem("token", found);
  history.replaceState(null, "", "#/");
}

export async function ask(question, parameters = {}) {
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return answer(await fetch(`/api/${question}${query.length ? `?${query.join("&")}` : ""}`, { headers: headers() }));
}

export async function send(question, request) {
  const body = JSON.stringify(request);
  return answer(await fetch(`/api/${question}`, { method: "POST", headers: { ...headers(), "content-type": "application/json" }, body }));
}

const headers = () => ({ authorization: `Bearer ${token}` });

async function answer(response) {
  if (response.ok) return response.json();
  const text = await response.text();
  let why = text;
  try {
    why = JSON.parse(text).error ?? text;
  } catch {
    // It is plain text.
  }
  throw new Refused(response.status, why);
}

const keyOf = (entry) => `${entry.kind} ${entry.id}`;

export const entryKey = keyOf;

function prepare(entry) {
  entry.ms = Date.parse(entry.at);
  return entry;
}

function addEntries(entries) {
  const known = new Map(store.entries.map((entry) => [keyOf(entry), entry]));
  for (const entry of entries) known.set(keyOf(entry), prepare(entry));
  store.entries = [...known.values()].sort((a, b) => b.ms - a.ms);
}

function putSession(session) {
  session.ms = session.last_active ? Date.parse(session.last_active) : 0;
  const stale = new Set(session.stale);
  const edited = new Set(session.edited ?? []);
  session.files = new Map(session.seen.map((path) => [path, { stale: stale.has(path), part: session.partly[path], edited: edited.has(path) }]));
  store.sessions.set(session.session, session);
}

async function start() {
  const now = await ask("start");
  Object.assign(store, {
    revision: now.revision,
    workspace: now.workspace,
    version: now.version,
    readOnly: now.read_only,
    state: now.state,
    rescues: now.rescues,
    total: now.total,
    sessions: new Map(),
    order: now.sessions.map((session) => session.session),
    entries: [],
    trouble: "",
  });
  now.sessions.forEach(putSession);
  addEntries([...now.entries, ...now.reads]);
  tell("all");
  if (now.total > now.entries.length) {
    await drawn();
    const rest = await ask("entries", { from: now.entries.length });
    addEntries(rest.entries);
    tell("entries");
  }
}

// Waits for the first picture, which would have to wait for all entries otherwise.
const drawn = () =>
  new Promise((resolve) => {
    setTimeout(resolve, 500);
    requestAnimationFrame(() => setTimeout(resolve));
  });

function take(news) {
  const changed = [];
  if (news.entries || news.reads) {
    if (news.gone?.length) {
      const gone = new Set(news.gone);
      store.entries = store.entries.filter((entry) => !gone.has(keyOf(entry)));
    }
    addEntries([...(news.entries ?? []), ...(news.reads ?? [])]);
    store.total = news.total ?? store.total;
    changed.push("entries");
  }
  if (news.sessions) {
    news.sessions.filter(Boolean).forEach(putSession);
    store.order = news.order;
    const there = new Set(news.order);
    for (const id of store.sessions.keys()) if (!there.has(id)) store.sessions.delete(id);
    changed.push("sessions");
  }
  if (news.state) {
    store.state = news.state;
    changed.push("state");
  }
  if (news.rescues) {
    store.rescues = news.rescues;
    changed.push("rescues");
  }
  store.revision = news.revision;
  tell(...changed);
}

// Keeps the store current. Never returns.
async function follow() {
  for (let failures = 0; ; failures++) {
    try {
      await readFeed(fetch("/api/feed", { headers: headers() }), () => (failures = 0));
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        store.connection = "refused";
        tell("connection");
        return;
      }
    }
    store.connection = "lost";
    tell("connection");
    await new Promise((resolve) => setTimeout(resolve, Math.min(5000, 250 * 2 ** failures)));
  }
}

// Asks for the present state at the same time. What is newer than that comes by the feed, which begins with its revision.
async function readFeed(feed, succeeded) {
  let text = "";
  let reader;
  let isStarted = false;
  let waiting = [];
  const begin = async () => {
    isStarted = false;
    await start();
    isStarted = true;
    store.connection = "live";
    tell("connection");
    succeeded();
    waiting.splice(0).forEach(hear);
  };
  const hear = ([event, data]) => {
    if (!isStarted) waiting.push([event, data]);
    else if (event === "news" && data.revision === store.revision + 1) take(data);
    else if (data.revision > store.revision) restart();
  };
  let failed = null;
  const restart = () => begin().catch((error) => {
    failed = error;
    reader?.cancel().catch(() => {});
  });
  restart();
  const response = await feed;
  if (!response.ok) await answer(response);
  reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (failed) throw failed;
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [event, data] = message(text.slice(0, end));
      text = text.slice(end + 2);
      if (event === "news" || event === "from") hear([event, data]);
      else if (event === "again") restart();
      else if (event === "board") tell("board");
      else if (event === "trouble") {
        store.trouble = data.why;
        tell("trouble");
      }
    }
  }
}

function message(text) {
  let event = "";
  let data = null;
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data = JSON.parse(line.slice(6));
  }
  return [event, data];
}

// This runs while the other files of the page are still on their way. What the page waits for is asked for first, because
// the storage of the browser takes a while.
token = tokenOf(location.hash) ?? sessionStorage.getItem("token") ?? "";
if (token) follow();
else store.connection = "refused";
takeToken();
