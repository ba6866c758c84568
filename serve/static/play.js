// A game: shows the API's answers, turns clicks, drags and keys into moves, nothing else.
// Only actions that the last answer lists as legal are ever sent.

import * as api from "./api.js";
import { Table, endsOf, legalMap, markSelection, tableElements } from "./board.js";
import { agentName, called, chip, count, eventText, listed } from "./cards.js";
import { alarm, announce, button, find, fly, h, openDialog, pulse, redraw } from "./dom.js";
import { enableDrag, top } from "./drag.js";
import { bestText, suggestionElements } from "./hint.js";
import { loadChoices, newGameForm } from "./newgame.js";
import * as sheet from "./sheet.js";
import { save, settings } from "./store.js";

export class Play {
  constructor(main, id) {
    this.main = main;
    this.id = id;
    this.view = null;
    this.told = []; // {ply, events}: what each answer told
    this.fresh = new Set();
    this.chosen = null; // {key, source, targets}
    this.answer = null; // the hint
    this.busy = false;
    this.over = false;
    this.build();
    this.onkey = (event) => this.key(event);
    document.addEventListener("keydown", this.onkey);
  }

  leave() {
    this.left = true;
    document.getElementById("dialog").close();
    document.removeEventListener("keydown", this.onkey);
  }

  build() {
    this.status = h("p", { class: "status" });
    this.felt = h("div", { class: "felt-root" });
    this.controls = h("div", { class: "controls" });
    this.hintPanel = h("section", { class: "panel hint", "aria-labelledby": "hint-title", hidden: true });
    this.logPanel = h("section", { class: "panel log", "aria-labelledby": "log-title" });
    this.matchPanel = h("section", { class: "panel match", "aria-labelledby": "match-title", hidden: true });
    this.main.replaceChildren(
      h("h1", { class: "sr", text: "Skip-Bo game" }),
      h("div", { class: "play" }, h("div", { class: "table-column" }, this.status, this.felt, this.controls), h("aside", { "aria-label": "Hint, moves and score" }, this.hintPanel, this.logPanel, this.matchPanel)),
    );
    this.felt.addEventListener("click", (event) => {
      const spot = event.target.closest(".spot");
      if (spot) this.activate(spot.dataset.key);
      else this.choose(null);
    });
    enableDrag(this.felt, {
      start: (element) => this.canMove() && this.choose(element.dataset.key),
      over: (target) => this.felt.querySelectorAll(".spot").forEach((spot) => spot.classList.toggle("hover", Boolean(target) && spot.dataset.target === target && spot.classList.contains("target"))),
      drop: (element, target, place) => this.drop(target, place),
    });
  }

  /** Fetch the game; also the way back after a fault. */
  async load() {
    try {
      const view = await api.loadGame(this.id);
      if (this.left) return;
      alarm(null);
      this.show(view, { resumed: true });
    } catch (fault) {
      if (!this.left) this.fault(fault);
    }
  }

  /** Take over an answer of the API. */
  show(view, { resumed = false, from = null, played = null } = {}) {
    const curtain = this.needsCurtain(view);
    this.view = view;
    this.table = new Table(view, this.namesOf(view));
    this.legal = legalMap(view, this.table.own);
    this.chosen = null;
    this.answer = null;
    this.hintPanel.hidden = true;
    this.remember(view, resumed);
    this.over = Boolean(view.result);
    save("last", this.over ? null : this.id);
    if (this.over) this.enterScore();
    const focused = document.activeElement;
    redraw(this.felt, curtain ? this.curtain() : tableElements(this.table, this.legal, this.fresh), this.fallbacks());
    if (focused?.dataset?.key?.startsWith("place:") && document.activeElement === document.body) this.main.focus({ preventScroll: true });
    markSelection(this.felt, null, null);
    if (from && played) fly(top(find(this.felt, endsOf(played, this.table.own)[1]) ?? this.felt), from);
    if (!resumed) this.fresh.forEach((key) => pulse(this.felt.querySelector(`[data-at="${key}"]`) ?? this.othersPile(key)));
    this.drawStatus();
    this.drawControls();
    this.drawLog();
    this.drawMatch();
  }

  othersPile(key) {
    return key.startsWith("build") ? find(this.felt, key) : null;
  }

  fallbacks() {
    return ["place:0", `stock:${this.table.own}`, "result:next", "build:0"];
  }

  /** What each seat is called: "You", an agent's name, numbered where it plays twice, or a number. */
  namesOf(view, you = view.seat) {
    return view.agents.map((agent, seat) => {
      if (seat === you) return "You";
      if (agent === null) return `Player ${seat + 1}`;
      const same = view.agents.map((name, other) => (name === agent ? other : null)).filter((other) => other !== null);
      return same.length === 1 ? agentName(agent) : `${agentName(agent)} (${same.indexOf(seat) + 1})`;
    });
  }

  /** Keep what an answer tells: each one goes on where the one before ended, unless moves were taken back. */
  remember(view, afresh) {
    const several = view.seats.length > 1; // answers are for different seats then, and overlap
    const known = this.told.filter(({ ply }) => ply < view.ply);
    const undone = this.told.length > 0 && this.told.at(-1).ply > view.ply;
    if (undone && known.length < this.told.length && this.told.some(({ ply }) => ply === view.ply)) {
      this.told = this.told.filter(({ ply }) => ply <= view.ply);
    } else {
      this.told = [...(afresh || several ? [] : known), { ply: view.ply, events: view.events }].slice(-60);
    }
    this.fresh = new Set();
    for (const event of view.events) {
      if (event.player !== undefined && event.player !== view.seat) this.markFresh(event);
    }
  }

  /** What happened, one entry a turn. */
  turns() {
    const turns = [];
    for (const event of this.told.flatMap(({ events }) => events)) {
      const { player } = event;
      if (event.type === "end" || (event.type === "draw" && (event.count ?? event.cards.length) === 0)) continue;
      if (!turns.length || (player !== undefined && turns.at(-1).player !== player)) turns.push({ player: player ?? null, parts: [] });
      const text = eventText(event, player === undefined ? null : this.table.boardOf(player));
      turns.at(-1).parts.push({ text, event });
    }
    return turns;
  }

  /** With several people at one screen a hand is shown to its owner alone. */
  needsCurtain(view) {
    if (view.seats.length < 2 || view.result || this.shownTo === view.seat) {
      this.shownTo = view.seats.length < 2 ? view.seat : this.shownTo;
      return false;
    }
    return true;
  }

  curtain() {
    const name = `Player ${this.view.seat + 1}`;
    return h("section", { class: "panel curtain" }, h("h2", { text: `${name}'s turn` }), h("p", { text: "Give the screen to them; nobody else looks." }), button("Show my cards", () => {
      this.shownTo = this.view.seat;
      this.redrawAll();
      find(this.felt, "place:0")?.focus();
    }, { class: "primary", "data-key": "place:0" }));
  }

  /** Draw everything again, after a setting has changed. */
  redrawAll() {
    if (!this.view) return;
    const told = this.told;
    this.show(this.view, { resumed: true });
    this.told = told;
    this.drawLog();
  }

  markFresh(event) {
    const board = event.board ?? this.table.boardOf(event.player);
    if (event.type === "play") {
      this.fresh.add(`build:${event.to}`);
      if (event.from === "stock") this.fresh.add(`stock:${board}`);
      else if (event.from !== "hand") this.fresh.add(`discard:${board}:${event.from.slice(8)}`);
    }
    if (event.type === "discard") this.fresh.add(`discard:${board}:${event.to}`);
  }

  canMove() {
    return !this.busy && !this.over && this.view && this.view.legal.length > 0 && this.felt.querySelector(".curtain") === null;
  }

  /** Select a card by its key, or nothing; says whether it may be moved. */
  choose(key) {
    const source = key === null ? null : find(this.felt, key)?.dataset.source;
    const targets = source ? this.legal.get(source) : null;
    this.chosen = targets && this.canMove() ? { key, source, targets } : null;
    markSelection(this.felt, this.chosen?.key ?? null, this.chosen?.targets ?? null);
    this.drawStatus();
    return Boolean(this.chosen);
  }

  /** A place was clicked, tapped, or entered with the keyboard. */
  activate(key) {
    if (!this.canMove()) {
      this.say(this.busy ? "One moment." : "It is not your turn.");
      return;
    }
    const spot = find(this.felt, key);
    const option = this.chosen?.targets.get(spot?.dataset.target);
    if (option) {
      this.play(option, top(find(this.felt, this.chosen.key)).getBoundingClientRect());
    } else if (this.chosen?.key === key) {
      this.choose(null);
    } else if (this.choose(key)) {
      announce(`${spot.dataset.label.split(":")[0] === "Hand" ? called(this.chosen.source.slice(5)) : spot.dataset.label.split(",")[0]} selected. It may go to ${listed([...this.chosen.targets.keys()].map((target) => this.placeName(target)))}.`);
    } else {
      this.say(`Nothing to do here now. ${spot.dataset.label}.`);
    }
  }

  placeName(target) {
    const [kind, board, pile] = target.split(":");
    if (kind === "build") return `building pile ${Number(board) + 1}`;
    return `${Number(board) === this.table.own ? "" : "your partner's "}discard pile ${Number(pile) + 1}`;
  }

  drop(target, place) {
    const option = target && this.chosen?.targets.get(target);
    if (option) this.play(option, place);
    else this.choose(null);
    return Boolean(option);
  }

  say(text) {
    this.status.textContent = text;
    announce(text);
  }

  async request(work) {
    if (this.busy) return null;
    this.busy = true;
    this.main.setAttribute("aria-busy", "true");
    this.drawControls();
    try {
      const result = await work();
      alarm(null);
      return this.left ? null : result;
    } catch (fault) {
      if (!this.left) this.fault(fault);
      return null;
    } finally {
      this.busy = false;
      this.main.removeAttribute("aria-busy");
      if (!this.left) this.drawControls();
    }
  }

  async play(option, from = null) {
    if (!this.canMove()) return;
    const hadHint = !this.hintPanel.hidden;
    this.choose(null);
    const view = await this.request(() => api.move(this.id, this.view.ply, option.action));
    if (!view) return;
    this.show(view, { from, played: option.move });
    if (hadHint && this.controls.contains(document.activeElement)) find(this.felt, "place:0")?.focus();
    this.tell();
  }

  /** Read out what happened since the last answer. */
  tell() {
    if (this.felt.querySelector(".curtain")) {
      announce(`${this.statusText()} Give the screen to them.`);
      return;
    }
    const told = [];
    for (const event of this.view.events ?? []) {
      if (event.type === "draw" && event.player !== this.view.seat) continue;
      const text = eventText(event, event.player === undefined ? null : this.table.boardOf(event.player));
      if (text) told.push(event.player === undefined ? `${text.charAt(0).toUpperCase()}${text.slice(1)}.` : `${this.table.nameOf(event.player)} ${text}.`);
    }
    const own = this.table.boards[this.table.own];
    const end = this.over ? this.resultText() : `${this.statusText()} Your stock shows ${own.stock_size ? called(own.stock_top) : "nothing"}.`;
    announce([...told, end].join(" "));
  }

  async undo() {
    if (!this.view || this.busy) return;
    if (this.felt.querySelector(".curtain")) {
      this.say(this.statusText());
      return;
    }
    if (!this.view.can_undo) {
      this.say("Nothing to take back: the last move has shown a hidden card, or ended the turn.");
      return;
    }
    const view = await this.request(() => api.undo(this.id, this.view.ply));
    if (!view) return;
    this.show(view);
    this.say("Your last move is taken back.");
  }

  async hint() {
    if (!this.canMove()) {
      this.say(this.over ? "The game is over." : "It is not your turn.");
      return;
    }
    if (!this.hintPanel.hidden) {
      this.closeHint();
      return;
    }
    this.say("Thinking…");
    const answer = await this.request(() => api.hint(this.id, { top: 10 }));
    if (!answer) {
      this.drawStatus();
      return;
    }
    this.answer = answer;
    this.hintPanel.hidden = false;
    this.hintPanel.replaceChildren(
      h("div", { class: "panel-head" }, h("h2", { id: "hint-title", text: "Hint" }), button("Close", () => this.closeHint(), { class: "quiet small", "data-key": "hint:close" })),
      ...suggestionElements(answer, { own: this.table.own, side: this.table.sideOf(this.view.seat), onplay: (move) => this.playHint(move) }).flat(2),
    );
    this.markHint(answer.moves[0].move);
    this.drawStatus();
    announce(bestText(answer, this.table.own));
    this.drawControls();
    this.hintPanel.querySelector("li")?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  closeHint() {
    const inside = this.hintPanel.contains(document.activeElement);
    this.hintPanel.hidden = true;
    this.answer = null;
    this.felt.querySelectorAll(".hinted").forEach((element) => element.classList.remove("hinted"));
    this.drawControls();
    if (inside) find(this.controls, "hint")?.focus();
  }

  markHint(move) {
    if (move.type === "pass") return;
    const [source, target] = endsOf(move, this.table.own);
    this.felt.querySelector(`[data-source="${source}"]`)?.classList.add("hinted");
    this.felt.querySelector(`[data-target="${target}"]`)?.classList.add("hinted");
  }

  playHint(move) {
    const option = this.view.legal.find((entry) => entry.action === move.action);
    if (!option) return;
    const [source] = move.move.type === "pass" ? [null] : endsOf(move.move, this.table.own);
    const spot = source && this.felt.querySelector(`[data-source="${source}"]`);
    this.play(option, spot ? top(spot).getBoundingClientRect() : null);
    spot?.focus({ preventScroll: true });
  }

  pass() {
    const option = this.view?.legal.find((entry) => entry.move.type === "pass");
    if (option) this.play(option);
  }

  async newGame() {
    try {
      const choices = await loadChoices();
      if (this.left) return;
      openDialog("A new game", newGameForm(choices, (view) => {
        document.getElementById("dialog").close();
        location.hash = `game/${view.id}`;
      }));
    } catch (fault) {
      if (!this.left) this.fault(fault);
    }
  }

  async nextOfMatch() {
    const match = sheet.current();
    const body = sheet.nextRequest(match);
    const view = await this.request(() => api.newGame(body));
    if (!view) return;
    sheet.addGame(view.id);
    location.hash = `game/${view.id}`;
  }

  /** A request failed: say what is wrong and what can be done. */
  fault(fault) {
    const again = ["Try again", () => this.load()];
    const fresh = ["New game", () => { alarm(null); location.hash = ""; }];
    const { current } = fault.problem ?? {};
    if (fault.status === 409 && current) {
      this.show(current, { resumed: true });
      this.say(fault.kind === "cannot-undo" ? fault.message : "The table has changed since; here is how it stands now.");
    } else if (fault.status === 0) {
      alarm("The service does not answer. The game is kept there: start it again, or wait, and go on.", [again]);
    } else if (fault.status === 404 || fault.status === 410) {
      alarm(fault.status === 404 ? "There is no game at this address. It may be too long ago." : "This game was kept by another version and cannot be read any more.", [fresh]);
      save("last", null);
    } else if (fault.kind === "agent-gone" || fault.kind === "unknown-agent") {
      alarm(`The agent that should answer is not available: ${fault.message}`, [again, fresh]);
    } else if (fault.status === 409) {
      this.say(fault.message);
    } else {
      alarm(`The service refused: ${fault.message}`, [again]);
    }
  }

  statusText() {
    const { view } = this;
    if (this.felt.querySelector(".curtain")) return `Player ${view.seat + 1} is to move.`;
    if (this.over) return this.resultText();
    if (!view.legal.length) return `${this.table.nameOf(view.to_move)} is to move.`;
    if (view.legal.some((option) => option.move.type === "pass")) return "Your turn. Nothing to draw: you may pass.";
    if (![...this.legal.values()].some((targets) => [...targets.keys()].some((key) => key.startsWith("build")))) return "Your turn. Nothing fits: discard a card.";
    return "Your turn. Choose a card.";
  }

  drawStatus() {
    if (!this.view) return;
    this.status.textContent = this.chosen ? `Where to? ${count(this.chosen.targets.size, "place")} marked.` : this.statusText();
    this.status.classList.toggle("mine", this.canMove());
  }

  drawControls() {
    if (!this.view) return;
    const { view } = this;
    const canUndo = view.can_undo && !this.busy && this.felt.querySelector(".curtain") === null;
    const letter = (key) => (settings.letters ? h("kbd", { "aria-hidden": "true", text: key }) : null);
    const items = this.over ? this.resultButtons() : [
      view.legal.some((option) => option.move.type === "pass") && button(["Pass", letter("P")].filter(Boolean), () => this.pass(), { class: "primary", "data-key": "pass" }),
      h("button", { type: "button", "data-key": "hint", "aria-expanded": String(!this.hintPanel.hidden), "aria-disabled": this.canMove() ? null : "true", onclick: () => this.hint() }, "Hint", letter("H")),
      h("button", { type: "button", "data-key": "undo", "aria-disabled": canUndo ? null : "true", onclick: () => this.undo() }, "Undo", letter("U")),
      h("button", { type: "button", "data-key": "new", onclick: () => this.newGame() }, "New game", letter("N")),
    ];
    redraw(this.controls, items, ["hint", "result:next", "new"]);
  }

  resultText() {
    const { result } = this.view;
    if (!result) return "";
    const why = { stalemate: "nobody could move", turn_limit: "the turn limit was reached" }[result.reason];
    if (result.winner === null) return `The game is over: ${why ?? "nobody wins"}. Nobody wins.`;
    const sides = this.sideNames();
    const mine = result.winner === this.table.sideOf(this.view.seat);
    const points = result.scores[result.winner];
    const who = mine ? (this.table.teams ? "Your team wins" : "You win") : `${sides[result.winner]} wins`;
    return `${who}${why ? `, since ${why}` : ""}: ${count(points, "point")}.`;
  }

  resultButtons() {
    const match = sheet.current();
    const open = sheet.has(match, this.id) && sheet.winner(match) === null && match.games.at(-1).id === this.id;
    return [
      open ? button("Next game of the match", () => this.nextOfMatch(), { class: "primary", "data-key": "result:next" }) : button("New game", () => this.newGame(), { class: "primary", "data-key": "result:next" }),
      h("a", { class: "button", href: `#review/${this.id}`, "data-key": "result:review", text: "Review the game" }),
      open && button("New match", () => this.newGame(), { "data-key": "new" }),
    ];
  }

  sideNames(names = this.namesOf(this.view)) {
    const { table } = this;
    const sides = table.teams || table.players.length;
    return Array.from({ length: sides }, (_, side) => listed(names.filter((_, seat) => table.sideOf(seat) === side)));
  }

  /** The sides of the match: where several people share the screen nobody is "You". */
  matchSides() {
    return this.sideNames(this.namesOf(this.view, this.view.seats.length > 1 ? null : this.view.seat));
  }

  enterScore() {
    sheet.enter(this.id, this.view.result, this.matchSides());
  }

  drawLog() {
    // What is behind the curtain is not told beside it either.
    this.logPanel.hidden = this.felt.querySelector(".curtain") !== null;
    const shownTurns = this.turns().slice(-(this.view.rules.players + 1)).reverse();
    this.logPanel.replaceChildren(
      h("h2", { id: "log-title", text: "Last moves" }),
      shownTurns.length
        ? h("ol", { class: "turns" }, shownTurns.map(({ player, parts }) => h("li", { class: player === this.view.seat ? "own" : "" }, h("strong", { text: player === null ? "" : `${this.table.nameOf(player)} ` }), h("span", { class: "sr", text: parts.map(({ text }) => text).join("; ") }), h("span", { class: "chips", "aria-hidden": "true" }, parts.map(({ event }) => chip(event))))))
        : h("p", { class: "note", text: "Nothing yet." }),
    );
  }

  drawMatch() {
    const match = sheet.current();
    this.matchPanel.hidden = !sheet.has(match, this.id);
    if (this.matchPanel.hidden) return;
    const won = match.sides ? sheet.winner(match) : null;
    const sides = match.sides ?? this.matchSides();
    this.matchPanel.replaceChildren(
      h("h2", { id: "match-title", text: "Match" }),
      sheet.sheetTable(sides, match.games.map((game) => game.scores), match.target, `To ${match.target} points`),
      won === null ? "" : h("p", { class: "note strong", text: `${sides[won]} ${sides[won] === "You" ? "win" : "wins"} the match.` }),
    );
  }

  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || !this.view) return;
    if (document.getElementById("dialog").open || event.target.closest?.("input, select, textarea")) return;
    const act = this.actionOf(event);
    if (act) {
      event.preventDefault();
      act();
    }
  }

  actionOf(event) {
    if (event.key === "Escape" && this.chosen) {
      return () => { this.choose(null); };
    }
    if (event.key.startsWith("Arrow")) return this.arrows(event);
    if (!settings.letters) return null;
    const digit = /^(?:Digit|Numpad)([1-4])$/.exec(event.code);
    if (digit && this.chosen) {
      const pile = Number(digit[1]) - 1;
      return () => this.activate(event.shiftKey ? `discard:${this.table.own}:${pile}` : `build:${pile}`);
    }
    if (event.shiftKey) return null;
    return { h: () => this.hint(), u: () => this.undo(), n: () => this.newGame(), p: () => this.pass(), s: () => this.activate(`stock:${this.table.own}`) }[event.key] ?? null;
  }

  /** Arrows go from card to card; with a card selected, over the places it may go to. */
  arrows(event) {
    const inside = this.felt.contains(document.activeElement);
    if (!inside && !this.chosen) return null;
    const spots = [...this.felt.querySelectorAll(this.chosen ? ".spot.target, .spot.chosen" : ".spot")];
    if (!spots.length) return null;
    const at = spots.indexOf(document.activeElement);
    const step = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
    return () => spots[(at + step + spots.length) % spots.length].focus();
  }
}
