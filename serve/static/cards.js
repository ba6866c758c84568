// Cards, and moves and events in words. Cards are "1" to "12" and "S", as in the API.

import { h } from "./dom.js";
import { settings } from "./store.js";

const PLAYING = { 1: "A", 11: "J", 12: "Q", S: "K" };
const SPOKEN = { 1: "ace", 11: "jack", 12: "queen", S: "wild (king or joker)" };

/** What an agent is called: "level:3" is level 3. */
export function agentName(name) {
  const level = /^level:(\d+)$/.exec(name);
  return level ? `level ${level[1]}` : name;
}

/** What is printed on a card. */
export function shown(card) {
  return (settings.names === "playing" && PLAYING[card]) || String(card);
}

/** What a card is called in a sentence. */
export function called(card) {
  if (settings.names === "playing" && SPOKEN[card]) return SPOKEN[card];
  return card === "S" ? "wild" : String(card);
}

/** A card's face. `as` is the rank that a wild counts for on a building pile. */
export function face(card, { as = null, small = false } = {}) {
  const wild = card === "S";
  const rank = as ?? card;
  const text = wild && as !== null ? shown(String(as)) : shown(card);
  const name = wild && as === null ? "wild" : `r${rank}`;
  return h(
    "span",
    { class: `card ${name}${small ? " small" : ""}${wild ? " is-wild" : ""}`, "aria-hidden": "true" },
    h("span", { class: "corner", text }),
    h("span", { class: "rank", text }),
    wild && h("span", { class: "word", text: as === null ? "wild" : shown("S") }),
  );
}

/** The back of a card. */
export function back({ small = false } = {}) {
  return h("span", { class: `card back${small ? " small" : ""}`, "aria-hidden": "true" });
}

/** A place without a card; the text says what belongs there. */
export function empty(text = "", { small = false } = {}) {
  return h("span", { class: `card empty${small ? " small" : ""}`, "aria-hidden": "true" }, h("span", { class: "wants", text }));
}

/** A list of words with "and" before the last one. */
export function listed(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** "1 card", "2 cards". */
export function count(n, word = "card") {
  return `${n} ${word}${n === 1 ? "" : "s"}`;
}

function cardOf(move) {
  return move.card === "S" && move.as ? `wild as ${called(String(move.as))}` : called(move.card);
}

function from(move, own) {
  const other = move.board !== undefined && move.board !== null && own !== null && move.board !== own ? "the other " : "";
  if (move.from === "hand") return "hand";
  if (move.from === "stock") return `${other}stock`;
  return `${other}discard pile ${Number(move.from.slice(8)) + 1}`;
}

/** A move as a short line: "7 from stock to pile 2". `own` is the mover's own board in team games. */
export function moveText(move, own = null) {
  if (move.type === "pass") return "pass";
  const other = move.type === "discard" && move.board !== undefined && move.board !== null && own !== null && move.board !== own;
  if (move.type === "discard") return `discard ${called(move.card)} on ${other ? "the other " : ""}discard pile ${move.to + 1}`;
  return `${cardOf(move)} from ${from(move, own)} to pile ${move.to + 1}`;
}

/** A play, discard or draw as a small chip for a list of moves; other events as plain ones. */
export function chip(event) {
  if (event.type === "play") {
    const card = event.card === "S" ? `${shown("S")}=${shown(String(event.as))}` : shown(event.card);
    const source = event.from.startsWith("discard") ? `discard ${Number(event.from.slice(8)) + 1}` : event.from;
    return h("span", { class: "chip" }, h("b", { text: card }), ` ${source} → ${event.to + 1}`);
  }
  if (event.type === "discard") return h("span", { class: "chip" }, h("b", { text: shown(event.card) }), ` ⤓ discard ${event.to + 1}`);
  const text = event.type === "reshuffle" ? `reshuffled ${count(event.count ?? event.cards.length)}` : eventText(event);
  return h("span", { class: "chip plain", text });
}

/** One event as words after its player's name; null where there is nothing to say. */
export function eventText(event, own = null) {
  switch (event.type) {
    case "draw": {
      if (event.cards) return `drew ${listed(event.cards.map(called))}`;
      return `drew ${count(event.count)}`;
    }
    case "play": return `played ${moveText(event, own)}`;
    case "discard": return moveText(event, own).replace("discard ", "discarded ");
    case "pass": return "passed";
    case "complete": return `completed pile ${event.pile + 1}`;
    case "reshuffle": return `the completed piles became a new draw pile of ${count(event.count ?? event.cards.length)}`;
    default: return null;
  }
}
