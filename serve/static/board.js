// The table of a game as elements. What lies where comes from the API's position; which cards may
// go where comes from its list of legal actions, so no rule of the game stands here.

import { back, called, count, empty, face, listed, shown } from "./cards.js";
import { h } from "./dom.js";

const FAN = 4; // cards of a discard pile that are drawn; its label names more

/** Who sits where, worked out once for an answer of the API. */
export class Table {
  constructor(view, names) {
    const { rules, position } = view;
    this.view = view;
    this.names = names;
    this.seat = view.seat;
    this.teams = rules.teams || 0;
    this.players = position.players;
    this.boards = position.boards ?? position.players;
    this.own = this.boardOf(this.seat);
    this.others = this.boards.map((_, board) => board).filter((board) => board !== this.own && !this.mine(board));
    this.partner = this.boards.map((_, board) => board).filter((board) => board !== this.own && this.mine(board));
    // In the order of play, the next player first.
    const turn = (board) => (board - this.own + this.boards.length) % this.boards.length;
    this.others.sort((a, b) => turn(a) - turn(b));
  }

  boardOf(seat) {
    if (!this.teams) return seat;
    return (Math.floor(seat / this.teams) % 2) * this.teams + (seat % this.teams);
  }

  sideOf(seat) {
    return this.teams ? seat % this.teams : seat;
  }

  mine(board) {
    return this.teams ? board % this.teams === this.seat % this.teams : board === this.own;
  }

  seatsAt(board) {
    return this.players.map((_, seat) => seat).filter((seat) => this.boardOf(seat) === board);
  }

  nameOf(seat) {
    return this.names[seat] ?? `Player ${seat + 1}`;
  }

  boardName(board) {
    return listed(this.seatsAt(board).map((seat) => this.nameOf(seat)));
  }
}

/** Key of the place that a move takes its card from, and of the place it goes to. */
export function endsOf(move, own) {
  const board = move.board ?? own;
  if (move.type === "discard") return [`hand:${move.card}`, `discard:${board}:${move.to}`];
  const target = `build:${move.to}`;
  if (move.from === "hand") return [`hand:${move.card}`, target];
  if (move.from === "stock") return [`stock:${board}`, target];
  return [`discard:${board}:${move.from.slice(8)}`, target];
}

/** Legal actions as source -> target -> action. */
export function legalMap(view, own) {
  const map = new Map();
  for (const option of view.legal) {
    if (option.move.type === "pass") continue;
    const [source, target] = endsOf(option.move, own);
    if (!map.has(source)) map.set(source, new Map());
    map.get(source).set(target, option);
  }
  return map;
}

function below(pile) {
  const rest = pile.slice(0, -1).reverse().map(called);
  if (!rest.length) return "";
  const told = rest.slice(0, 8);
  return ` on top of ${listed(told)}${rest.length > told.length ? ` and ${rest.length - told.length} more` : ""}`;
}

function pileText(pile) {
  return pile.length ? `${called(pile.at(-1))}${below(pile)}` : "empty";
}

function fan(pile, small = false) {
  const cards = pile.slice(-FAN).map((card) => face(card, { small }));
  const depth = h("span", { class: "depth", "aria-hidden": "true", text: pile.length });
  return [h("span", { class: "fan" }, cards.length ? cards : empty("", { small })), pile.length > FAN && depth];
}

function stockFace(board, small = false) {
  if (!board.stock_size) return empty("out", { small });
  return face(board.stock_top, { small });
}

function stockText(board) {
  return board.stock_size ? `${called(board.stock_top)} on top, ${count(board.stock_size)} left` : "empty";
}

/** A control on the table. `label` is its name for screen readers, and its tooltip. */
function spot(key, label, content, { source = null, target = null, legal, kind }) {
  const usable = source !== null && legal.has(source);
  return h(
    "button",
    {
      type: "button",
      class: `spot ${kind}${usable ? " usable" : ""}`,
      "data-key": key,
      "data-source": source,
      "data-target": target,
      "data-label": label,
      "aria-label": label,
      "aria-pressed": usable ? "false" : null,
      title: kind.includes("discard") ? label : null,
    },
    content,
  );
}

/** Another side's board: nothing to click, everything to read. */
function otherBoard(table, index, fresh) {
  const board = table.boards[index];
  const seats = table.seatsAt(index);
  const turn = seats.includes(table.view.to_move);
  const hands = seats.map((seat) => table.players[seat].hand_size);
  const pile = (cards, i) => h(
    "span",
    { class: `mini${fresh.has(`discard:${index}:${i}`) ? " fresh" : ""}`, role: "img", "data-at": `discard:${index}:${i}`, "aria-label": `Discard pile ${i + 1}: ${pileText(cards)}`, title: pileText(cards) },
    fan(cards, true),
  );
  return h(
    "section",
    { class: `other${turn ? " turn" : ""}`, "aria-label": `${table.boardName(index)}'s cards` },
    h("h2", {}, h("span", { class: "who", text: table.boardName(index) }), h("span", { class: "inhand" }, h("span", { class: "pips", "aria-hidden": "true" }, Array.from({ length: Math.min(6, hands[0]) }, () => h("i"))), ` ${hands.join(" + ")} in hand`)),
    h(
      "div",
      { class: "row" },
      h("span", { class: `mini stock${fresh.has(`stock:${index}`) ? " fresh" : ""}`, role: "img", "data-at": `stock:${index}`, "aria-label": `Stock: ${stockText(board)}` }, stockFace(board, true), h("span", { class: "badge", "aria-hidden": "true", text: board.stock_size })),
      board.discards.map(pile),
    ),
  );
}

/** A board that this seat may play from: stock and four discard piles. */
function ownBoard(table, index, legal, fresh) {
  const board = table.boards[index];
  const own = index === table.own;
  const whose = own ? "Your" : "Your partner's";
  const shared = own ? "" : " partner";
  return h(
    "section",
    { class: `mine${shared}`, "aria-label": own ? "Your stock and discard piles" : `${table.boardName(index)}: stock and discard piles of your team` },
    !own && h("h2", {}, h("span", { class: "who", text: `${table.boardName(index)} (your team)` }), h("span", { class: "inhand", text: `${table.seatsAt(index).map((seat) => table.players[seat].hand_size).join(" + ")} in hand` })),
    h(
      "div",
      { class: "row" },
      h("div", { class: "cell" }, spot(`stock:${index}`, `${whose} stock: ${stockText(board)}`, [stockFace(board), h("span", { class: "badge", "aria-hidden": "true", text: board.stock_size })], { source: `stock:${index}`, legal, kind: "stock" }), h("span", { class: "caption", "aria-hidden": "true", text: "stock" })),
      board.discards.map((pile, i) => {
        const key = `discard:${index}:${i}`;
        return h("div", { class: "cell" }, spot(key, `${whose} discard pile ${i + 1}: ${pileText(pile)}`, fan(pile), { source: key, target: key, legal, kind: `discard${fresh.has(key) ? " fresh" : ""}` }));
      }),
    ),
  );
}

function middle(table, legal, fresh) {
  const { position } = table.view;
  const aside = Object.values(position.completed ?? {}).reduce((sum, n) => sum + n, 0);
  return h(
    "section",
    { class: "middle", "aria-label": "Building piles" },
    h(
      "div",
      { class: "row" },
      h("div", { class: "cell" }, h("span", { class: "mini draw", role: "img", "aria-label": `Draw pile: ${count(position.draw_size ?? 0)}. Completed piles: ${count(aside)}.`, title: `${count(position.draw_size ?? 0)} to draw, ${aside} in completed piles` }, position.draw_size ? back() : empty("none"), h("span", { class: "badge", "aria-hidden": "true", text: position.draw_size ?? "?" })), h("span", { class: "caption", "aria-hidden": "true", text: "draw" })),
      position.building.map((height, i) => {
        const key = `build:${i}`;
        const top = position.building_cards?.[i]?.at(-1) ?? String(height);
        const wants = String(height + 1);
        const state = height ? `${called(String(height))}${top === "S" ? " (a wild)" : ""} on top` : "empty";
        return h(
          "div",
          { class: "cell" },
          spot(key, `Building pile ${i + 1}: ${state}, wants ${called(wants)}`, height ? face(top, { as: String(height) }) : empty(shown("1")), { target: key, legal, kind: `build${fresh.has(key) ? " fresh" : ""}` }),
          h("span", { class: "caption", "aria-hidden": "true" }, "wants ", h("b", { text: shown(wants) })),
        );
      }),
    ),
  );
}

function hand(table, legal) {
  const cards = table.view.position.hand ?? [];
  return h(
    "section",
    { class: "hand", "aria-label": `Your hand, ${count(cards.length)}` },
    h(
      "div",
      { class: `row${cards.length > 5 ? " many" : ""}` },
      cards.map((card, i) => {
        const source = `hand:${card}`;
        return spot(`place:${i}`, `Hand: ${called(card)}`, face(card), { source, legal, kind: "held" });
      }),
      !cards.length && h("p", { class: "nohand", text: "No cards in hand" }),
    ),
  );
}

/** The whole table. `fresh` holds the keys of places that have changed since this seat's last turn. */
export function tableElements(table, legal, fresh) {
  const wide = table.others.length === 1 ? " one" : "";
  return h(
    "div",
    { class: `felt boards-${table.boards.length}` },
    h("div", { class: `others${wide}` }, table.others.map((board) => otherBoard(table, board, fresh))),
    middle(table, legal, fresh),
    table.partner.map((board) => ownBoard(table, board, legal, fresh)),
    ownBoard(table, table.own, legal, fresh),
    hand(table, legal),
  );
}

/** Mark the selected card and the places it may go to, or nothing; elements stay the same. */
export function markSelection(root, key, targets) {
  root.querySelectorAll(".spot").forEach((element) => {
    const chosen = element.dataset.key === key;
    const target = targets?.get(element.dataset.target);
    element.classList.toggle("chosen", chosen);
    element.classList.toggle("target", Boolean(target));
    if (element.hasAttribute("aria-pressed")) element.setAttribute("aria-pressed", String(chosen));
    const { label } = element.dataset;
    const verb = target?.move.type === "discard" ? "Discard" : "Play";
    element.setAttribute("aria-label", target ? `${verb} ${called(target.move.card)} here. ${label}` : label);
  });
  root.classList.toggle("choosing", Boolean(targets));
}
