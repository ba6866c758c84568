// The service's API: requests, and its errors as one kind of exception.

/** An error of the service, or its absence (status 0). */
export class Fault extends Error {
  constructor(status, problem) {
    // The field that a message begins with is the program's name for it, in "pointer" too.
    super((problem.detail || problem.title || `the service answered ${status}`).replace(/^\/\S*: /, ""));
    this.status = status;
    this.kind = (problem.type || "").split("/").pop();
    this.problem = problem;
  }

  /** The failing fields as [pointer, text] pairs. */
  get fields() {
    return (this.problem.errors || []).map((error) => [error.pointer, error.detail]);
  }
}

async function call(method, path, body, signal) {
  let response;
  let data = null;
  try {
    response = await fetch(path, {
      method,
      signal,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    data = text ? JSON.parse(text) : null;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!response) throw new Fault(0, { detail: "The service does not answer." });
    throw new Fault(response.status, { detail: "The service gave an answer that is no JSON." });
  }
  if (response.ok) return { data, status: response.status, location: response.headers.get("Location") };
  const fault = new Fault(response.status, data || {});
  fault.retryAfter = Number(response.headers.get("Retry-After")) || 0;
  throw fault;
}

/** The same request again where the service asks to wait for a few seconds. */
async function patiently(method, path, body, signal) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await call(method, path, body, signal);
    } catch (fault) {
      if (!fault.retryAfter || fault.retryAfter > 5 || attempt === 2) throw fault;
      await new Promise((done) => setTimeout(done, 1000 * fault.retryAfter));
    }
  }
}

export const get = async (path) => (await patiently("GET", path)).data;
export const post = async (path, body = {}) => (await patiently("POST", path, body)).data;
export const postFull = (path, body = {}) => patiently("POST", path, body);

const game = (id) => `v1/games/${encodeURIComponent(id)}`;
const match = (id) => `v1/matches/${encodeURIComponent(id)}`;

export const agents = () => get("v1/agents");
export const rules = () => get("v1/rules");
export const suggest = (body) => post("v1/suggest", body);
export const newGame = (body) => post("v1/games", body);
export const loadGame = (id) => get(game(id));
export const move = (id, ply, action) => post(`${game(id)}/moves`, { ply, action });
export const undo = (id, ply) => post(`${game(id)}/undo`, { ply });
export const hint = (id, body) => post(`${game(id)}/hint`, body);
export const record = (id) => get(`${game(id)}/record`);

/** A review; `progress` is told (done, total) of one that is made in the background. */
export async function analyse(body, progress = () => {}) {
  const answer = await postFull("v1/analysis", body);
  if (answer.status !== 202) return answer.data;
  for (let told = answer.data; ; told = await get(answer.location.slice(1))) {
    if (told.status === "done") return told.analysis;
    if (told.status === "failed") throw new Fault(500, { detail: told.detail });
    progress(told.done, told.total);
    await new Promise((done) => setTimeout(done, 1000));
  }
}
export const newMatch = (body) => post("v1/matches", body);
export const loadMatch = (id) => get(match(id));
export const undoMatch = (id, index) => post(`${match(id)}/undo`, { index });
export const addToMatch = (id, body) => post(`${match(id)}/games`, body);
