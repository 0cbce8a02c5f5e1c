// Shows what a daemon sees: asks for its state twice a second and draws the answer. What comes from the wire goes into
// the document as text, never as markup.
"use strict";
(() => {
  const EVERY = 500;        // between an answer and the next question, ms
  const PATIENCE = 3000;    // for an answer, ms
  const MINUTE = 60000;
  const LANE = 30;          // height of a lane, px
  const MOST = { locks: 12, actors: 12, all: 300, lanes: 14, words: 80 };
  const SVG = "http://www.w3.org/2000/svg";
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  const $ = (id) => document.getElementById(id);
  let snap = null;          // the snapshot that is shown
  let skew = null;          // the daemon's clock less performance.now(), ms
  let heard = 0;            // when the last answer came, by performance.now()
  let lost = null;          // why the daemon cannot be reached, and since when
  let paused = false;
  let pausedAt = 0;
  let timer = 0;
  const busy = new Set();   // rules whose switch waits for an answer

  // ---- words ----

  // What would not be seen, or would change how its neighbours are read, is spelled out.
  const odd = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
  const plain = (x) => String(x ?? "").replace(odd, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  const when = (t) => (t ? Date.parse(t) : NaN);
  const many = (n, one, more = one + "s") => `${n} ${n === 1 ? one : more}`;
  const list = (x) => (Array.isArray(x) ? x : []);

  function span(ms) {
    const a = Math.abs(ms);
    if (a < 1000) return `${Math.round(ms)} ms`;
    if (a < 59950 && a % 1000 === 0) return `${ms / 1000} s`;
    if (a < 59950) return `${(ms / 1000).toFixed(1)} s`;
    const s = Math.round(a / 1000), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return h ? `${h} h ${m} min` : s % 60 ? `${m} min ${s % 60} s` : `${m} min`;
  }

  // rough is a time that runs, in steps that can be read.
  const rough = (ms) => (ms < 100 ? "under 0.1 s" : ms < MINUTE ? `${(Math.floor(ms / 100) / 10).toFixed(1)} s` : span(ms));

  function clock(t, fine) {
    const d = new Date(t);
    if (isNaN(d)) return "";
    const two = (n) => String(n).padStart(2, "0");
    const s = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
    if (!fine && Math.abs(Date.now() - t) > 20 * 60 * MINUTE) return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${s}`;
    return fine ? `${s}.${String(d.getMilliseconds()).padStart(3, "0")}` : s;
  }

  // ---- the document ----

  function el(tag, cls, text) {
    const n = document.createElement(tag);
    if (cls) n.className = cls;
    if (text !== undefined) n.textContent = plain(text);
    return n;
  }

  function svg(tag, attrs) {
    const n = document.createElementNS(SVG, tag);
    for (const k in attrs) n.setAttribute(k, attrs[k]);
    return n;
  }

  // say changes a text only if it is another, so that nothing is read out or selected anew.
  function say(n, text) {
    text = plain(text);
    if (n.textContent !== text) n.textContent = text;
  }

  function mark(n, name, value) {
    if (value === null || value === false) n.removeAttribute(name);
    else if (n.getAttribute(name) !== String(value)) n.setAttribute(name, value);
  }

  function cls(n, value) { if (n.className !== value) n.className = value; }

  // keyed keeps one child for each item: what stays is not touched, so that it keeps its focus.
  function keyed(parent, items, key, make, update) {
    const had = parent.rows || new Map(), rows = new Map();
    for (const item of items) {
      let k = key(item);
      while (rows.has(k)) k += "'";
      rows.set(k, item);
    }
    for (const [k, row] of had) if (!rows.has(k)) row.remove();
    let at = parent.firstChild;
    for (const [k, item] of rows) {
      const row = had.get(k) || make(item);
      rows.set(k, row);
      update(row, item);
      if (row === at) at = at.nextSibling;
      else parent.insertBefore(row, at);
    }
    parent.rows = rows;
  }

  // facts puts short texts beside each other: [text, class] or text; what is empty is left out.
  function facts(n, all) {
    const some = all.filter((f) => f && (f[0] !== "" || !Array.isArray(f)));
    while (n.childNodes.length > some.length) n.lastChild.remove();
    some.forEach((f, i) => {
      const [text, c] = Array.isArray(f) ? f : [f, ""];
      const item = n.childNodes[i] || n.appendChild(el("span"));
      say(item, text);
      cls(item, c || "");
    });
  }

  function tell(text) { $("said").textContent = plain(text); }

  // ---- asking ----

  function headers(more) {
    const token = sessionStorage.getItem("token");
    return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
  }

  async function ask() {
    try {
      const began = performance.now();
      const r = await fetch("v1/state", { headers: headers(), cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
      if (r.status === 401) return wantToken();
      if (!r.ok) throw new Error(await refusal(r));
      take(await r.json(), began);
    } catch (e) {
      lose(e);
    }
    again();
  }

  function again() {
    clearTimeout(timer);
    timer = setTimeout(ask, EVERY);
  }

  async function refusal(r) {
    const text = await r.text().catch(() => "");
    try {
      return JSON.parse(text).error || `it answered ${r.status}`;
    } catch {
      return `it answered ${r.status} ${text.slice(0, 200)}`.trim();
    }
  }

  function take(s, began) {
    if (!s || typeof s !== "object" || isNaN(when(s.now))) throw new Error("it answered with something else than its state");
    const now = performance.now(), said = when(s.now) - (began + now) / 2;
    // Answers take now more, now less time: small differences are evened out, lest bars jump.
    skew = skew === null || Math.abs(said - skew) > 250 ? said : skew + (said - skew) * 0.1;
    heard = now;
    if (lost) tell("The daemon answers again.");
    lost = null;
    if (paused) return link();
    snap = s;
    document.documentElement.classList.remove("blank");
    draw();
  }

  function lose(e) {
    const why = e.name === "TimeoutError" ? "no answer within 3 s" : e instanceof TypeError ? "no connection" : e.message;
    if (!lost) lost = { since: performance.now() };
    lost.why = why;
    link();
  }

  // The daemon's time, which stands still while nothing is heard of it and while the picture is kept.
  function now() {
    const here = paused ? pausedAt : lost ? heard : performance.now();
    return here + (skew || 0);
  }

  async function post(path, body) {
    const r = await fetch(path, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body || {}), signal: AbortSignal.timeout(10000) });
    if (r.status === 401) wantToken();
    if (!r.ok) throw new Error(await refusal(r));
  }

  // order has the daemon do something, and says what came of it.
  async function order(path, body, done, failed) {
    try {
      await post(path, body);
      tell(done);
      return true;
    } catch (e) {
      warn(`${failed}: ${e instanceof TypeError ? "no connection" : e.message}`);
      return false;
    } finally {
      clearTimeout(timer);
      if (!$("token-dialog").open) ask();
    }
  }

  // ---- the token ----

  function wantToken() {
    clearTimeout(timer);
    const had = sessionStorage.getItem("token") !== null;
    sessionStorage.removeItem("token");
    $("token-wrong").hidden = !had;
    say($("token-variable"), $("name").textContent === "probe" ? "PROBE_TOKEN" : "LOCKFAULTD_ADMIN_TOKEN");
    say($("link-text"), "waits for the token");
    mark($("link"), "data-state", "asking");
    if (!$("token-dialog").open) $("token-dialog").showModal();
  }

  function giveToken(event) {
    event.preventDefault();
    const value = $("token").value.trim();
    if (!value) return;
    sessionStorage.setItem("token", value);
    $("token").value = "";
    $("token-dialog").close();
    ask();
  }

  // ---- the head ----

  let warned = 0;
  function warn(text) {
    warned = performance.now();
    say($("trouble"), text);
    $("trouble").hidden = false;
  }

  function link() {
    document.documentElement.classList.toggle("lost", !!lost);
    mark($("link"), "data-state", lost ? "lost" : paused ? "paused" : "live");
    if (lost) {
      const since = performance.now() - lost.since;
      say($("link-text"), since < 1000 ? "not reachable" : `not reachable for ${span(Math.floor(since / 1000) * 1000)}`);
      warn(`The daemon cannot be reached: ${lost.why}. ` + (snap ? `This is how it stood at ${clock(when(snap.now))}. ` : "") + "It is asked again twice a second.");
      warned = Infinity;
      return;
    }
    say($("link-text"), paused ? `paused at ${clock(now())}` : "live");
    if (warned === Infinity || performance.now() - warned > 8000) $("trouble").hidden = true;
  }

  function headline(s) {
    const rules = list(s.rules), armed = rules.filter((r) => r.armed).length;
    const stopped = list(s.actors).filter((a) => a.state === "frozen"), stalled = list(s.actors).filter((a) => a.state === "stalled");
    const over = s.blind_since ? [] : list(s.locks).filter((l) => l.overrun), broken = list(s.invariants).filter((i) => i.state === "broken");
    const harm = list(s.verdicts).filter((v) => v.harm).reduce((n, v) => n + (v.count || 1), 0);
    const held = list(s.locks).filter((l) => l.held).length;
    const some = [];
    const count = (all, one, more) => all.length && some.push(all.length === 1 ? one(all[0]) : `${all.length} ${more}`);
    count(broken, (i) => `${i.name} does not hold`, "invariants do not hold");
    count(over, (l) => `${l.holder || "somebody"} holds ${l.name} past its lease`, "locks are held past their leases");
    count(stopped, (a) => `${a.label} is frozen`, "actors are frozen");
    count(stalled, (a) => `${a.label} is stalled`, "actors are stalled");
    if (s.control) some.push(!armed ? "no rule is armed" : armed === rules.length ? `${many(armed, "rule")} armed` : `${armed} of ${rules.length} rules armed`);
    if (!broken.length && list(s.invariants).length) some.push(unread(s) || "every invariant holds");
    if (some.length < 3) some.push(s.blind_since ? `its locks are not known since ${clock(when(s.blind_since))}` : held ? `${many(held, "lock")} held` : "no lock is held");
    const [tone, word] = harm ? ["bad", `${many(harm, "finding")} of harm`] : broken.length ? ["bad", "Broken"]
      : over.length ? ["bad", "Overrun"] : stopped.length ? ["frozen", "Frozen"] : stalled.length ? ["armed", "Stalled"]
      : armed ? ["armed", "Armed"] : s.control ? ["calm", "Passive"] : ["good", "No harm"];
    return { tone, word, rest: some.slice(0, 3).join("; ") };
  }

  function unread(s) {
    const n = list(s.invariants).filter((i) => i.state !== "holds").length;
    return n ? n === 1 ? "one invariant is not known to hold" : `${n} invariants are not known to hold` : "";
  }

  function drawHead(s) {
    say($("name"), s.name || "lockfaultd");
    say($("version"), s.version || "");
    mark($("version"), "title", s.since ? `since ${new Date(when(s.since)).toLocaleString()}` : null);
    $("stop").hidden = !s.control;
    const h = headline(s);
    mark($("summary"), "data-tone", h.tone);
    say($("word"), `${h.word}:`);
    say($("rest"), h.rest);
    const title = `${h.word} · ${plain(s.name)}`;
    if (document.title !== title) document.title = title;
  }

  // ---- locks ----

  const stirred = new Map();    // when a lock was last seen to be held, by its name

  // byName gathers the entries of each lock.
  function byName(all) {
    const groups = new Map(), t = now();
    for (const l of all) groups.has(l.name) ? groups.get(l.name).push(l) : groups.set(l.name, [l]);
    for (const l of all) if (l.held) stirred.set(l.name, t);
    for (const name of stirred.keys()) if (!groups.has(name)) stirred.delete(name);
    return [...groups.values()];
  }

  // few keeps the most telling of a list, in its order, and of equals those that are shown already. A button shows the others.
  function few(id, rows, key, rank) {
    const button = $(`${id}-more`), most = button.all ? MOST.all : MOST[id], shown = $(id).rows || new Map();
    button.hidden = rows.length <= MOST[id];
    say(button, button.all ? "Show fewer" : `Show all ${rows.length}`);
    mark(button, "aria-expanded", String(!!button.all));
    if (rows.length <= most) return rows;
    const order = (r) => rank(r) * 2 + (shown.has(key(r)) ? 0 : 1);
    const kept = new Set([...rows].sort((a, b) => order(a) - order(b)).slice(0, most));
    return rows.filter((r) => kept.has(r));
  }

  function more(id) {
    const button = $(`${id}-more`);
    button.all = !button.all;
    if (snap) draw();
  }

  function drawLocks(s) {
    const groups = byName(s.blind_since ? [] : list(s.locks)), key = (g) => g[0].name, recent = now() - 10000;
    const rows = few("locks", groups, key, (g) => (g.some((l) => l.overrun) ? 0 : stirred.get(key(g)) > recent ? 1 : 2));
    $("locks-none").hidden = groups.length > 0;
    say($("locks-none"), s.blind_since ? `Not known since ${clock(when(s.blind_since))}.` : "No lock has been seen yet.");
    say($("locks-note"), rows.length < groups.length ? `${rows.length} of ${groups.length}` : "");
    keyed($("locks"), rows, key, makeLock, updateLock);
  }

  function makeLock(g) {
    const li = el("li"), head = el("div", "row");
    head.append(el("bdi", "name", g[0].name), el("span", "facts push"));
    li.append(head, el("div", "terms"));
    return li;
  }

  function updateLock(li, g) {
    const held = g.filter((l) => l.held || l.overrun), over = g.some((l) => l.overrun);
    const stranger = !held.length && g.some((l) => l.stranger);
    cls(li, over ? "is-over" : held.length || stranger ? "is-held" : "is-free");
    const waiters = Math.max(...g.map((l) => l.waiters || 0));
    facts(li.querySelector(".push"), [waiters ? `${waiters} waiting` : "", stranger ? "held by somebody unseen" : held.length ? "" : "free"]);
    keyed(li.querySelector(".terms"), held, (l) => `${l.holder} ${l.since}`, makeTerm, updateTerm);
  }

  function makeTerm() {
    const div = el("div"), lease = el("div", "lease"), bar = el("div", "bar");
    bar.append(el("i", "sure"), el("i", "open"));
    mark(bar, "aria-hidden", "true");
    lease.append(bar, el("span", "left"));
    div.append(lease, el("div", "facts"));
    return div;
  }

  function updateTerm(div, l) {
    div.lease = { from: when(l.ends_from), to: when(l.ends_to), ttl: l.ttl_ms || 0, over: l.overrun };
    div.since = when(l.since);
    facts(div.querySelector(".facts"), [
      l.gone ? [`held by ${l.holder || "somebody"}, who is gone`, "warn"] : `held by ${l.holder || "somebody"}`,
      l.since ? `since ${clock(div.since)}` : "",
      l.ttl_ms ? `lifetime ${span(l.ttl_ms)}` : "",
      l.fence === undefined || l.fence === null ? "" : `fence ${l.fence}`,
      l.margin_ms === undefined || l.margin_ms === null ? "" : [l.margin_ms < 0 ? `last write ${span(-l.margin_ms)} after the end` : `last write ${span(l.margin_ms)} before the end`, l.margin_ms < 0 ? "bad" : l.ttl_ms && l.margin_ms < l.ttl_ms / 10 ? "warn" : ""],
    ]);
    runDown(div);
  }

  // runDown moves one bar to the daemon's time.
  function runDown(div) {
    const { from, to, ttl, over } = div.lease, t = now();
    const bar = div.firstChild.firstChild, text = div.firstChild.lastChild;
    const [sure, open] = bar.children;
    let state = "", words = "", width = 0, end = 0;
    if (!ttl) [state, words] = ["ever", "no lifetime"];
    else if (isNaN(from) || isNaN(to)) [words, end] = ["end not known", 1];
    else if (over || t > to) [state, words] = over ? ["over", `overrun by ${rough(t - to)}`] : ["", "ended"];
    else {
      width = Math.max(0, Math.min(1, (from - t) / ttl));
      end = Math.max(0, Math.min(1, (to - t) / ttl));
      state = (from - t) / ttl < 0.2 ? "short" : "";
      words = from > t ? `${rough(from - t)} left` : "may have ended";
    }
    cls(bar, `bar ${state}`);
    sure.style.width = `${width * 100}%`;
    open.style.left = `${width * 100}%`;
    open.style.width = end > 0 ? `max(3px, ${(end - width) * 100}%)` : "0";
    say(text, words);
    cls(text, over ? "left bad" : state === "short" ? "left warn" : "left");
  }

  // ---- actors ----

  function drawActors(s) {
    const all = list(s.actors), key = (a) => a.label;
    const rows = few("actors", all, key, (a) => (a.state !== "running" ? 0 : list(a.holds).length ? 1 : 2));
    const count = (state) => all.filter((a) => a.state === state).length, [frozen, stalled, running] = ["frozen", "stalled", "running"].map(count);
    $("actors-panel").hidden = !s.control && !all.length;
    $("actors-none").hidden = all.length > 0;
    say($("actors-note"), [frozen && `${frozen} frozen`, stalled && `${stalled} stalled`, running && `${running} running`].filter(Boolean).join(", "));
    keyed($("actors"), rows, key, makeActor, updateActor);
  }

  function makeActor(a) {
    const li = el("li"), head = el("div", "row");
    head.append(el("bdi", "name", a.label), el("span", "state push"));
    li.append(head, el("div", "facts"), el("div", "facts"));
    return li;
  }

  function updateActor(li, a) {
    li.until = when(a.until);
    li.actor = a;
    cls(li, a.state);
    const state = li.querySelector(".state");
    say(state, a.state);
    cls(state, `state push ${a.state}`);
    facts(li.lastChild, [
      list(a.holds).length ? `holds ${a.holds.join(", ")}` : "",
      many(a.sessions || 0, "connection"),
      a.pid ? `pid ${a.pid}` : "",
    ]);
    countDown(li);
  }

  function countDown(li) {
    const a = li.actor, left = li.until - now();
    facts(li.childNodes[1], [a.by ? `by ${plain(a.by).replace(/^by /, "")}` : "", isNaN(left) || a.state === "running" ? "" : left > 0 ? `${rough(left)} left` : "is being let go"]);
  }

  // ---- rules ----

  function drawRules(s) {
    $("rules-panel").hidden = !s.control;
    $("rules-none").hidden = list(s.rules).length > 0;
    keyed($("rules"), list(s.rules), (r) => r.name, makeRule, updateRule);
  }

  function makeRule(r) {
    const li = el("li"), head = el("div", "row"), b = el("button", "switch"), track = el("span", "track");
    b.type = "button";
    track.ariaHidden = "true";
    b.append(track, el("bdi", "name", r.name));
    b.addEventListener("click", () => flip(b, li.rule));
    head.append(b, el("span", "word push"));
    li.append(head, el("code", "text"), el("div", "facts"));
    return li;
  }

  function updateRule(li, r) {
    li.rule = r;
    li.until = when(r.until);
    const b = li.querySelector("button");
    mark(b, "aria-pressed", r.armed ? "true" : "false");
    mark(b, "aria-busy", busy.has(r.name) ? "true" : null);
    say(li.querySelector(".text"), r.text);
    facts(li.lastChild, [
      `${r.seen || 0} seen`, [`${r.fired || 0} fired`, ""], r.barred ? [`${r.barred} barred`, "warn"] : "",
      r.left === undefined || r.left === null ? "" : many(r.left, "time left", "times left"), r.why || "",
    ]);
    runOut(li);
  }

  function runOut(li) {
    const r = li.rule, word = li.querySelector(".word"), left = li.until - now();
    say(word, !r.armed ? "off" : isNaN(left) ? "armed" : `armed for ${span(Math.ceil(Math.max(0, left) / 1000) * 1000)}`);
    cls(word, r.armed ? "word push armed" : "word push");
  }

  async function flip(button, rule) {
    if (busy.has(rule.name)) return;
    busy.add(rule.name);
    mark(button, "aria-busy", "true");
    const arm = !rule.armed, path = `v1/rules/${encodeURIComponent(rule.name)}/${arm ? "arm" : "disarm"}`;
    const spell = arm && $("arm-for").value ? { for: $("arm-for").value } : {};
    await order(path, spell, `${rule.name} is ${arm ? "armed" : "off"}`, `${rule.name} was not switched`);
    busy.delete(rule.name);
    mark(button, "aria-busy", null);
  }

  // ---- verdicts, invariants, sight ----

  const verdictKey = (v) => v.id || [v.at, v.code, v.lock, v.table].join(" ");

  function drawVerdicts(s) {
    const all = list(s.verdicts), ol = $("verdicts"), first = !ol.rows;
    $("verdicts-panel").hidden = s.control && !all.length;
    $("verdicts-none").hidden = all.length > 0;
    const harm = all.filter((v) => v.harm).length;
    say($("verdicts-note"), all.length ? (harm ? `${harm} of harm among the last ${all.length}` : "none of harm") : "");
    keyed(ol, all, verdictKey, (v) => makeVerdict(v, first), updateVerdict);
    if (first) setTimeout(() => ol.setAttribute("aria-live", "polite"), 0); // what was there before is not read out
  }

  function makeVerdict(v, first) {
    const li = el("li"), head = el("div", "row"), time = el("time", "push", clock(when(v.at)));
    mark(time, "datetime", plain(v.at));
    head.append(el("span", "code", v.code), el("span", "what", v.name), el("span", "level"), time);
    li.append(head, el("div", "facts"), proofOf(v));
    cls(li, `${v.harm ? "harm" : plain(v.class).replace(/\W/g, "")}${first ? "" : " fresh"}`);
    return li;
  }

  // proofOf is the proof, folded if it is long.
  function proofOf(v) {
    const p = el("p", "proof", v.proof);
    if (String(v.proof || "").length <= 240) return p;
    const fold = el("details");
    fold.append(el("summary", "", "why that is so"), p);
    return fold;
  }

  function updateVerdict(li, v) {
    const level = li.querySelector(".level");
    say(level, v.level);
    cls(level, `level ${plain(v.level).replace(/\W/g, "")}`);
    facts(li.querySelector(".facts"), [v.harm ? ["harm", "bad"] : v.class, v.lock ? `lock ${v.lock}` : "", v.table ? `table ${v.table}` : "", v.count > 1 ? `${v.count} times` : ""]);
    say(li.querySelector(".proof"), v.proof || "");
  }

  function drawInvariants(s) {
    const all = list(s.invariants), holds = all.filter((i) => i.state === "holds").length;
    $("invariants-panel").hidden = !all.length;
    say($("invariants-note"), `${holds} of ${all.length} hold`);
    keyed($("invariants"), all, (i) => i.name, makeInvariant, updateInvariant);
  }

  function makeInvariant(i) {
    const li = el("li"), head = el("div", "row");
    head.append(el("bdi", "name", i.name), el("span", "value"), el("span", "state push"));
    li.append(head, el("div", "facts"));
    return li;
  }

  function updateInvariant(li, i) {
    const state = li.querySelector(".state");
    say(li.querySelector(".value"), i.value || "");
    say(state, i.state === "unknown" ? "not known" : i.state);
    cls(state, `state push ${plain(i.state).replace(/\W/g, "")}`);
    facts(li.lastChild, [i.kind, i.text ? [i.text, i.state === "broken" ? "bad" : ""] : "", i.at ? `read at ${clock(when(i.at))}` : ""]);
  }

  function drawSight(s) {
    const sources = list(s.sources), gaps = list(s.unseen), down = sources.filter((x) => !x.up).length;
    say($("sight-note"), down ? `${down} of ${sources.length} cannot be reached` : s.gaps ? `${many(s.gaps, "gap")}` : "");
    cls($("sight-note"), down ? "note bad" : "note");
    keyed($("sources"), sources, (x) => x.name, makeSource, updateSource);
    $("gaps-none").hidden = s.gaps > 0 || down > 0;
    keyed($("gaps"), gaps, (g) => `${g.at} ${g.why}`, makeGap, updateGap);
  }

  function makeSource(x) {
    const li = el("li"), head = el("div", "row");
    head.append(el("bdi", "name", x.name), el("span", "state push"));
    li.append(head, el("div", "facts"));
    return li;
  }

  function updateSource(li, x) {
    const state = li.querySelector(".state");
    say(state, x.up ? "reached" : "not reached");
    cls(state, `state push ${x.up ? "up" : "down"}`);
    facts(li.lastChild, [x.address || "", !x.up && x.since ? [`since ${clock(when(x.since))}`, "bad"] : "", x.text ? [x.text, x.up ? "" : "bad"] : "", !x.up && x.at ? `last heard of at ${clock(when(x.at))}` : ""]);
  }

  function makeGap(g) {
    const li = el("li"), head = el("div", "row");
    head.append(el("time", "", clock(when(g.at))), el("span", "facts"));
    li.append(head, el("p", "proof", g.why));
    return li;
  }

  function updateGap(li, g) {
    const to = when(g.to);
    facts(li.querySelector(".facts"), [isNaN(to) ? "" : `for ${span(to - when(g.at))}`, g.lost ? `${many(g.lost, "line")} lost` : ""]);
  }

  // ---- the last minute ----

  const ALL = "\u0000all";      // the lane of verdicts
  let stage = null;             // the moving part of the picture, its scale and its origin

  const laneOf = (m) => (m.kind === "verdict" ? ALL : m.actor || m.lock || "");

  function lanesOf(s) {
    const marks = list(s.marks), weight = new Map();
    const heavy = { freeze: 100, stall: 100, injection: 50, rejected: 20 };
    for (const m of marks) {
      const lane = laneOf(m);
      if (lane) weight.set(lane, (weight.get(lane) || 0) + (lane === ALL ? 1e6 : heavy[m.kind] || 1));
    }
    const idle = list(s.actors).filter((a) => a.label && !weight.has(a.label)); // they have a lane if there is room
    if (weight.size + idle.length <= MOST.lanes) for (const a of idle) weight.set(a.label, 0);
    const names = [...weight.keys()], kept = new Set(names.sort((a, b) => weight.get(b) - weight.get(a)).slice(0, MOST.lanes));
    return { lanes: [...kept].sort((a, b) => (a === ALL ? -1 : b === ALL ? 1 : a < b ? -1 : a > b ? 1 : 0)), left: names.length - kept.size };
  }

  function drawTimeline(s) {
    const { lanes, left } = lanesOf(s);
    say($("timeline-note"), left ? `${many(left, "lane")} more not shown` : "");
    keyed($("lanes"), lanes, (l) => l, (l) => el("div", "", l === ALL ? "verdicts" : l), (n, l) => mark(n, "title", l === ALL ? null : plain(l)));
    setStage(lanes);
    const where = new Map(lanes.map((l, i) => [l, i]));
    const marks = list(s.marks).filter((m) => m.kind === "gap" || where.has(laneOf(m)));
    const depth = (m) => depths[m.kind] ?? (m.kind === "verdict" && tone(m, s) === "harm" ? 5 : 4);
    const depths = { gap: 0, section: 1, refusal: 2, write: 2, stall: 3, freeze: 3 };
    marks.sort((a, b) => depth(a) - depth(b));
    keyed(stage.group, marks, (m) => [m.kind, m.at, m.actor, m.lock].join("\u0000"), makeMark, (n, m) => updateMark(n, m, where.get(laneOf(m)) ?? 0, lanes.length, s));
    say($("picture-title"), inShort(list(s.marks)));
    if ($("words").open) drawWords(s);
    slide();
  }

  // setStage makes the picture's frame anew when its size has changed, or its origin is long ago.
  function setStage(lanes) {
    const picture = $("picture"), width = Math.max(120, picture.clientWidth || 600), height = Math.max(1, lanes.length) * LANE;
    if (stage && stage.width === width && stage.height === height && now() - stage.origin < 10 * MINUTE) return;
    if (stage) stage.frame.remove();
    const frame = svg("g"), group = svg("g");
    for (let i = 1; i < 4; i++) frame.append(svg("path", { class: "grid", d: `M${Math.round((width * i) / 4)}.5 0V${height}` }));
    for (let i = 1; i < lanes.length; i++) frame.append(svg("path", { class: "grid", d: `M0 ${i * LANE}.5H${width}` }));
    frame.append(group);
    picture.append(frame);
    mark(picture, "height", height);
    mark(picture, "viewBox", `0 0 ${width} ${height}`);
    stage = { frame, group, width, height, scale: width / MINUTE, origin: now() };
  }

  const shapes = {
    write: "M0 -5V5", rejected: "M-3 -3L3 3M3 -3L-3 3", injection: "M-4 -13H4L0 -6Z", verdict: "M0 -7L6 0L0 7L-6 0Z",
  };
  const heights = { section: 14, freeze: 20, stall: 20 };
  const BELOW = 12.5;           // refusals are under what was granted

  function makeMark(m) {
    const g = svg("g"), title = svg("title");
    const shape = m.kind === "refusal" ? svg("circle", { r: 2, cy: BELOW }) : shapes[m.kind] ? svg("path", { d: shapes[m.kind] }) : svg("rect", { rx: m.kind === "section" ? 3 : 0 });
    if (m.kind === "freeze" || m.kind === "stall" || m.kind === "gap") mark(shape, "fill", `url(#p-${m.kind})`);
    g.append(title, shape);
    if (m.kind === "section") g.append(svg("text", { x: 5, y: 4 }));
    if (shape.tagName !== "rect") g.append(svg("rect", { y: (m.kind === "refusal" ? BELOW : 0) - 0.75, height: 1.5 })); // how far several in a row reach
    return g;
  }

  function updateMark(g, m, lane, lanes, s) {
    const [title, shape, last] = g.childNodes, whole = m.kind === "gap" && !m.actor && !m.lock;
    say(title, inWords(m));
    g.mark = { from: when(m.at), to: m.open ? Infinity : when(m.to), name: m.kind === "section" ? plain(m.lock) : "", flat: shape.tagName !== "rect" };
    mark(g, "transform", `translate(${((g.mark.from - stage.origin) * stage.scale).toFixed(2)} ${whole ? stage.height / 2 : lane * LANE + LANE / 2})`);
    mark(shape, "class", `m-${plain(m.kind).replace(/\W/g, "")} ${m.kind === "verdict" ? tone(m, s) : ""}`.trim());
    if (g.mark.flat) {
      mark(last, "class", `${shape.getAttribute("class")} m-reach`);
    } else {
      const h = whole ? lanes * LANE : heights[m.kind] || 14;
      mark(shape, "height", h);
      mark(shape, "y", -h / 2);
    }
    stretch(g, last);
  }

  // tone is the class of the verdict that a mark stands for.
  function tone(m, s) {
    const v = list(s.verdicts).find((v) => m.text && String(m.text).startsWith(v.code) && (!m.lock || v.lock === m.lock)) || list(s.verdicts).find((v) => m.text && String(m.text).startsWith(v.code));
    return !v ? "" : v.harm ? "harm" : plain(v.class).replace(/\W/g, "");
  }

  function stretch(g, last) {
    const to = g.mark.to === Infinity ? now() : isNaN(g.mark.to) ? g.mark.from : g.mark.to;
    const width = (to - g.mark.from) * stage.scale;
    if (g.mark.flat) return mark(last, "width", Math.max(0, width).toFixed(2));
    mark(g.childNodes[1], "width", Math.max(2, width).toFixed(2));
    if (!last) return;
    const room = Math.floor((width - 10) / 6.7), name = g.mark.name;
    say(last, name.length <= room ? name : room < 12 ? "" : name.slice(0, room - 1) + "…");
  }

  // slide moves the picture to the daemon's time: now is at its right edge.
  function slide() {
    if (!stage) return;
    stage.group.setAttribute("transform", `translate(${(stage.width - (now() - stage.origin) * stage.scale).toFixed(2)} 0)`);
    for (const g of stage.group.childNodes) if (g.mark.to === Infinity) stretch(g, g.childNodes[2]);
  }

  const names = { rejected: "write refused", refusal: "lock refused", gap: "not seen" };

  function inWords(m) {
    const from = when(m.at), to = m.open ? NaN : when(m.to);
    return plain([m.actor, names[m.kind] || m.kind, m.lock, m.text, m.open ? "goes on" : isNaN(to) ? "" : `for ${span(to - from)}`].filter(Boolean).join(" · "));
  }

  function inShort(marks) {
    const n = {};
    for (const m of marks) n[m.kind] = (n[m.kind] || 0) + 1;
    const said = Object.keys(n).map((k) => `${n[k]} × ${names[k] || k}`);
    return said.length ? `In the last minute: ${said.join(", ")}.` : "Nothing has happened in the last minute.";
  }

  function drawWords(s) {
    const last = list(s.marks).slice(-MOST.words).reverse();
    keyed($("words-list"), last, (m) => [m.kind, m.at, m.actor, m.lock].join("\u0000"), (m) => {
      const li = el("li");
      li.append(el("time", "mono", clock(when(m.at), true)), el("span"));
      return li;
    }, (li, m) => say(li.lastChild, inWords(m)));
  }

  // ---- time ----

  function draw() {
    drawHead(snap);
    drawLocks(snap);
    drawActors(snap);
    drawRules(snap);
    drawVerdicts(snap);
    drawInvariants(snap);
    drawSight(snap);
    drawTimeline(snap);
    link();
  }

  // move lets run what runs between two answers: bars with each frame, what is slower a few times a second.
  let slow = 0;
  function move(at) {
    for (const li of $("locks").children) for (const div of li.lastChild.children) runDown(div);
    if (at - slow < 100) return;
    slow = at;
    for (const li of $("actors").children) countDown(li);
    for (const li of $("rules").children) runOut(li);
    slide();
  }

  function frame(at) {
    if (snap && !calm.matches && !paused && !lost) move(at);
    requestAnimationFrame(frame);
  }

  // ---- keys ----

  function go(id) {
    const n = $(id);
    if (!n || n.closest("[hidden]")) return;
    n.scrollIntoView({ block: "start", behavior: calm.matches ? "auto" : "smooth" });
    n.focus({ preventScroll: true });
  }

  function togglePause() {
    paused = !paused;
    pausedAt = performance.now();
    mark($("pause"), "aria-pressed", String(paused));
    say($("pause"), paused ? "Go on" : "Pause");
    link();
  }

  function openStop() {
    if ($("stop").hidden || $("stop-dialog").open) return;
    $("stop-dialog").showModal();
  }

  async function stopAll() {
    $("stop-dialog").close();
    $("stop").disabled = true;
    await order("v1/stop", {}, "All faults are stopped.", "It was not stopped");
    $("stop").disabled = false;
    $("stop").focus();
  }

  function step(by) {
    const all = [...document.querySelectorAll("#rules .switch")], at = all.indexOf(document.activeElement);
    if (at < 0 || !all[at + by]) return false;
    all[at + by].focus();
    return true;
  }

  const letters = {
    l: () => go("locks-title"), t: () => go("timeline-title"), a: () => go("actors-title"), v: () => go("verdicts-title"), i: () => go("invariants-title"),
    r: () => (document.querySelector("#rules .switch") || $("rules-title")).focus(),
    p: togglePause, s: openStop, "?": () => $("help-dialog").showModal(),
  };

  function press(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]") || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    if ((e.key === "ArrowDown" && step(1)) || (e.key === "ArrowUp" && step(-1))) return e.preventDefault();
    if (!$("single-keys").checked || !Object.hasOwn(letters, e.key)) return;
    e.preventDefault();
    letters[e.key]();
  }

  function begin() {
    document.addEventListener("keydown", press);
    $("pause").addEventListener("click", togglePause);
    $("help").addEventListener("click", letters["?"]);
    $("help-close").addEventListener("click", () => $("help-dialog").close());
    $("stop").addEventListener("click", openStop);
    $("stop-no").addEventListener("click", () => $("stop-dialog").close());
    $("stop-yes").addEventListener("click", stopAll);
    $("token-form").addEventListener("submit", giveToken);
    $("token-dialog").addEventListener("cancel", (e) => e.preventDefault());
    for (const id of ["locks", "actors"]) $(`${id}-more`).addEventListener("click", () => more(id));
    $("words").addEventListener("toggle", () => snap && $("words").open && drawWords(snap));
    $("single-keys").checked = localStorage.getItem("single-keys") !== "no";
    $("single-keys").addEventListener("change", () => localStorage.setItem("single-keys", $("single-keys").checked ? "yes" : "no"));
    addEventListener("resize", () => snap && drawTimeline(snap));
    ask();
    requestAnimationFrame(frame);
  }

  begin();
})();
