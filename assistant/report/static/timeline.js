const TINTS = ['--compute', '--comm', '--mem', '--op', '--runtime', '--i-sync', '--mark', '--i-data_loader'];
const ROW = 15, LANE_GAP = 7, AXIS = 24, GUTTER = 190;

const decoded = (level) => {  // a level's columns; starts and ends are sums of the steps stored
  if (level.rows) return level;
  const get = (name) => column(`${level.key}.${name}`);
  const step = get('step'), length = get('length'), free = get('free');
  Object.assign(level, { rows: get('rows'), count: get('count'), name: get('name'), tint: get('tint'), free, length });
  level.from = new Float64Array(step.length);
  level.reach = new Float64Array(step.length);  // the largest end so far in the row: it never falls
  for (let row = 0; row + 1 < level.rows.length; row++) {
    let at = 0, most = 0;
    for (let i = level.rows[row]; i < level.rows[row + 1]; i++) {
      at += step[i];
      most = Math.max(most, at + length[i]);
      level.from[i] = at;
      level.reach[i] = most;
    }
  }
  return level;
};
const laneName = (lane) => {
  if (lane.kind === 'gpu') return say('stream', { d: lane.device || '?', s: lane.stream || '?' });
  if (lane.kind === 'gpu_mark') return say('stream_marks', { d: lane.device || '?', s: lane.stream || '?' });
  return say(lane.kind, { t: lane.thread });
};
const shortName = (name) => name.replace(/^void /, '');

const timeline = () => {
  const line = values.timeline, box = document.getElementById('timeline');
  const rows = [];  // of each row its top; lanes stand apart
  let top = 4;
  for (const lane of line.lanes) {
    for (let r = 0; r < lane.rows; r++, top += ROW) rows.push({ lane, top });
    top += LANE_GAP;
  }
  const state = { from: 0, to: line.span, row: 0, chosen: null };
  const bar = make('div', { class: 'tools-bar' });
  const axisCanvas = make('canvas', { 'aria-hidden': 'true' });
  const canvas = make('canvas', { tabindex: '0', role: 'application', 'aria-label': document.getElementById('c-timeline').textContent,
    'aria-describedby': 'timeline-keys' });
  const scroller = make('div', { class: 'rows' });
  const tip = make('div', { class: 'tip', hidden: '' });
  const chosen = make('div', { class: 'chosen', role: 'status' }, words.nothing);
  const shown = make('span', { class: 'soft', id: 'timeline-shown' });
  scroller.append(canvas);
  box.append(axisCanvas, scroller, chosen, tip);
  box.before(bar);
  const keys = make('ul', { class: 'legend' });
  new Set(line.levels.flatMap((l) => [...new Set(column(`${l.key}.tint`))])).forEach((t) => {
    const item = make('li', {}, words[`t${t}`]);
    const sample = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    sample.setAttribute('width', '14');
    sample.setAttribute('height', '14');
    const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    for (const [k, v] of [['width', '14'], ['height', '14'], ['rx', '2']]) rect.setAttribute(k, v);
    rect.style.fill = `var(${TINTS[t]})`;
    sample.append(rect);
    item.prepend(sample);
    keys.append(item);
  });
  bar.before(keys);

  const width = () => Math.max(scroller.clientWidth - GUTTER, 50);
  const perPixel = () => (state.to - state.from) / width();
  const levelNow = () => {
    const r = perPixel();
    const fit = line.levels.find((l) => l.resolution <= r);
    if (fit) return decoded(fit);
    const inside = line.details.find((d) => d.start <= state.from && state.to <= d.end);
    return decoded(inside || line.levels[line.levels.length - 1]);
  };
  const move = (from, to) => {
    const least = Math.min(50, line.span);
    let length = Math.min(Math.max(to - from, least), line.span);
    const middle = (from + to) / 2;
    state.from = Math.min(Math.max(middle - length / 2, 0), line.span - length);
    state.to = state.from + length;
    draw();
  };
  const zoom = (factor, x) => {
    const at = x === undefined ? (state.from + state.to) / 2 : state.from + x * perPixel();
    move(at - (at - state.from) * factor, at + (state.to - at) * factor);
  };
  const shift = (share) => move(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));

  const drawAxis = () => {
    const w = scroller.clientWidth, pen = surface(axisCanvas, box.clientWidth, AXIS);
    pen.font = FONT;
    pen.fillStyle = colour('--soft');
    pen.textBaseline = 'middle';
    const rough = perPixel() * 110, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const [scale, unit] = UNITS.find(([s]) => state.to >= s) || UNITS[3];
    const places = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / scale) + 1e-9)));
    for (let t = Math.ceil(state.from / step) * step; t <= state.to; t += step) {
      const x = GUTTER + (t - state.from) / perPixel();
      if (x > w - 40) break;
      pen.fillRect(x, AXIS - 6, 1, 6);
      pen.fillText(`${(t / scale).toFixed(places)} ${unit}`, x + 4, AXIS / 2 - 1);
    }
  };
  const drawRow = (pen, level, index, paint) => {
    const r = perPixel(), y = rows[index].top, low = level.rows[index], high = level.rows[index + 1];
    let last = -9;
    for (let i = firstAbove(level.reach, low, high, state.from); i < high && level.from[i] < state.to; i++) {
      const x0 = Math.max((level.from[i] - state.from) / r, 0);
      const x1 = Math.min((level.from[i] + level.length[i] - state.from) / r, width());
      if (x1 < last + 0.25) continue;
      last = Math.max(x1, x0 + 0.5);
      const busy = level.length[i] ? 1 - level.free[i] / level.length[i] : 1;
      pen.globalAlpha = level.count[i] > 1 ? 0.3 + 0.7 * busy : 1;
      pen.fillStyle = paint[level.tint[i]];
      const gap = x1 - x0 > 3 ? 0.5 : 0;
      pen.fillRect(GUTTER + x0, y, Math.max(x1 - x0 - gap, 0.5), ROW - 2);
      pen.globalAlpha = 1;
      if (x1 - x0 > 34 && level.count[i] === 1) {
        pen.fillStyle = [0, 1, 2].includes(level.tint[i]) ? colour(['--on-compute', '--on-comm', '--on-mem'][level.tint[i]]) : paint.text;
        pen.fillText(fitted(pen, shortName(line.names[level.name[i]]), x1 - x0 - 6), GUTTER + x0 + 3, y + ROW / 2 - 0.5);
      }
    }
  };
  const draw = () => {
    const level = levelNow(), pen = surface(canvas, scroller.clientWidth, top);
    pen.font = FONT;
    pen.textBaseline = 'middle';
    const paint = TINTS.map(colour);
    paint.text = colour('--fg');
    for (const lane of line.lanes) {
      const y = rows[lane.row].top;
      pen.fillStyle = colour('--fg');
      pen.fillText(fitted(pen, laneName(lane), GUTTER - 18), 10, y + ROW / 2 - 0.5);
      pen.fillStyle = colour('--line');
      pen.fillRect(0, y + lane.rows * ROW + LANE_GAP / 2 - 1, scroller.clientWidth, 0.5);
    }
    rows.forEach((_, index) => drawRow(pen, level, index, paint));
    if (state.chosen) {
      const { from, to, row } = state.chosen;
      const x0 = Math.max((from - state.from) / perPixel(), 0), x1 = Math.min((to - state.from) / perPixel(), width());
      pen.strokeStyle = colour('--fg');
      pen.lineWidth = 2;
      if (x1 >= 0 && x0 <= width()) pen.strokeRect(GUTTER + x0 - 1, rows[row].top - 1, Math.max(x1 - x0, 2) + 2, ROW);
    }
    drawAxis();
    shown.textContent = say('shown', { from: duration(state.from), to: duration(state.to),
      r: level.resolution ? say('resolution', { r: duration(level.resolution) }) : words.exact });
  };
  const segment = (level, i, row) => ({ from: level.from[i], to: level.from[i] + level.length[i], row, count: level.count[i],
    name: line.names[level.name[i]], tint: level.tint[i], busy: level.length[i] ? 1 - level.free[i] / level.length[i] : 1 });
  const told = (s) => {
    const parts = [];
    if (s.count > 1) parts.push(say('events', { n: number(s.count) }));
    parts.push(s.name, `(${words[`t${s.tint}`]})`, say('length', { t: duration(s.to - s.from) }), say('at', { t: duration(s.from) }));
    if (s.count > 1) parts.push(say('busy', { p: percent(s.busy) }));
    return parts.join(' ');
  };
  const under = (event) => {
    const area = canvas.getBoundingClientRect();
    const x = event.clientX - area.left - GUTTER, y = event.clientY - area.top;
    const row = rows.findIndex((r) => y >= r.top && y < r.top + ROW - 1);
    if (x < 0 || row < 0) return null;
    const level = levelNow(), t = state.from + x * perPixel(), slack = 2 * perPixel();
    const high = level.rows[row + 1];
    for (let i = firstAbove(level.reach, level.rows[row], high, t - slack); i < high && level.from[i] <= t + slack; i++) {
      if (level.from[i] + level.length[i] >= t - slack) return segment(level, i, row);
    }
    return null;
  };
  const choose = (s) => {
    state.chosen = s;
    state.row = s ? s.row : state.row;
    chosen.textContent = s ? `${laneName(rows[s.row].lane)}: ${told(s)}` : words.nothing;
    draw();
  };
  const step = (by) => {  // the next or previous segment of the row that is chosen
    const level = levelNow(), low = level.rows[state.row], high = level.rows[state.row + 1];
    if (low === high) return;
    const at = state.chosen && state.chosen.row === state.row ? state.chosen.from : by > 0 ? state.from - 1 : state.to;
    let i = by > 0 ? firstAbove(level.from, low, high, at) : firstAbove(level.from, low, high, at - 1e-6) - 1;
    i = Math.min(Math.max(i, low), high - 1);
    choose(segment(level, i, state.row));
    if (level.from[i] < state.from || level.from[i] > state.to) move(level.from[i] - (state.to - state.from) / 2, level.from[i] + (state.to - state.from) / 2);
  };
  const hover = (event) => {
    const s = under(event);
    tip.hidden = !s;
    if (!s) return;
    tip.textContent = told(s);
    const area = box.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - area.left + 14, area.width - Math.min(tip.offsetWidth, area.width))}px`;
    tip.style.top = `${event.clientY - area.top + 16}px`;
  };

  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    drag = { x: event.clientX, from: state.from, to: state.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) return hover(event);
    const by = (drag.x - event.clientX) * (drag.to - drag.from) / width();
    drag.moved = drag.moved || Math.abs(drag.x - event.clientX) > 3;
    tip.hidden = true;
    if (drag.moved) move(drag.from + by, drag.to + by);
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag && !drag.moved) choose(under(event));
    drag = null;
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('dblclick', (event) => {
    const s = under(event);
    if (s) move(s.from - 0.2 * (s.to - s.from + 1), s.to + 0.2 * (s.to - s.from + 1));
  });
  canvas.addEventListener('wheel', (event) => {  // the page scrolls until the timeline was clicked
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const x = event.clientX - canvas.getBoundingClientRect().left - GUTTER;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) shift((event.deltaX || event.deltaY) / 1000);
    else zoom(1.0015 ** event.deltaY, Math.max(x, 0));
  }, { passive: false });
  const acts = {
    '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: () => move(0, line.span),
    ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25),
    ArrowUp: () => { state.row = Math.max(state.row - 1, 0); step(1); }, ArrowDown: () => { state.row = Math.min(state.row + 1, rows.length - 1); step(1); },
    n: () => step(1), p: () => step(-1),
    Enter: () => state.chosen && move(state.chosen.from - 0.2 * (state.chosen.to - state.chosen.from + 1), state.chosen.to + 0.2 * (state.chosen.to - state.chosen.from + 1)),
    Escape: () => choose(null),
  };
  canvas.addEventListener('keydown', (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  for (const [text, name, act] of [['+', 'zoom_in', acts['+']], ['−', 'zoom_out', acts['-']], ['←', 'left', acts.ArrowLeft], ['→', 'right', acts.ArrowRight]]) {
    const button = make('button', { type: 'button', 'aria-label': words[name], title: words[name] }, text);
    button.addEventListener('click', act);
    bar.append(button);
  }
  const all = make('button', { type: 'button' }, words.all);
  all.addEventListener('click', acts[0]);
  bar.append(all);
  if (line.iterations.length > 1) {
    const go = make('select', { 'aria-label': words.iteration });
    go.append(make('option', { value: '' }, words.iteration));
    line.iterations.forEach(([name], index) => go.append(make('option', { value: index }, number(name))));
    go.addEventListener('change', () => {
      if (go.value === '') return;
      const [, from, to] = line.iterations[Number(go.value)];
      move(from - 0.02 * (to - from), to + 0.02 * (to - from));
    });
    bar.append(go);
  }
  bar.append(shown);
  redrawn.push(draw);
  move(line.view[0], line.view[1]);
};
