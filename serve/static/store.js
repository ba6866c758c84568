// What the browser remembers: settings, names of a game's seats, the match that is being played.
// Without storage (private windows, blocked) everything works and is forgotten.

const PREFIX = "skipbo.";

export function load(key, fallback = null) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function save(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page goes on without.
  }
}

const DEFAULTS = { names: "numbers", letters: true };

/** The settings; `names` is "numbers" or "playing" (A, J, Q, K), `letters` the shortcut keys. */
export const settings = { ...DEFAULTS, ...load("settings", {}) };

export function changeSetting(name, value) {
  settings[name] = value;
  save("settings", settings);
}
