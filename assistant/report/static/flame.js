const KINDS = ['--python', '--op', '--runtime', '--compute', '--mark', '--comm', '--mem'];
const FRAME = 19;

const flame = (graph, index) => {
  const box = document.getElementById(`flame-${index}`);
  const get = (name) => column(`${graph.key}.${name}`);
  const depth = get('depth'), from = get('x0'), width = get('width'), name = get('name'), kind = get('kind');
  const deepest = depth.reduce((a, b) => Math.max(a, b), 0);
  const byDepth = Array.from({ length: deepest + 1 }, () => []);  // frames of each depth, left to right
  depth.forEach((d, i) => byDepth[d].push(i));
  byDepth.forEach((frames) => frames.sort((a, b) => from[a] - from[b]));
  const state = { from: 0, to: graph.total, chosen: -1, wanted: '' };
  const hit = graph.names.map(() => false);

  const bar = make('div', { class: 'tools-bar' });
  const whole = make('button', { type: 'button' }, words.reset);
  const input = make('input', { type: 'search', 'aria-label': words.find, placeholder: words.find });
  const told = make('span', { class: 'soft', role: 'status' });
  const scroller = make('div', { class: 'rows' });
  const canvas = make('canvas', { tabindex: '0', role: 'application', 'aria-label': document.getElementById(`c-flame-${index}`).textContent,
    'aria-describedby': 'flame-keys' });
  const tip = make('div', { class: 'tip', hidden: '' });
  const chosen = make('div', { class: 'chosen', role: 'status' }, words.nothing);
  scroller.append(canvas);
  box.append(scroller, chosen, tip);
  bar.append(whole, input, told);
  box.before(bar);

  const describe = (i) => `${graph.names[name[i]]} ${say('length', { t: duration(width[i]) })}, ${say('of_all', { p: percent(width[i] / graph.total) })}`;
  const frameAt = (d, t) => {
    const frames = byDepth[d] || [];
    let low = 0, high = frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (from[frames[middle]] <= t) low = middle + 1; else high = middle;
    }
    const i = frames[low - 1];
    return i !== undefined && t < from[i] + width[i] ? i : -1;
  };
  const draw = () => {
    const across = Math.max(scroller.clientWidth, 50), pen = surface(canvas, across, (deepest + 1) * FRAME + 2);
    const scale = across / (state.to - state.from), paint = KINDS.map(colour), text = colour('--fg'), inverse = colour('--on-compute');
    pen.font = FONT;
    pen.textBaseline = 'middle';
    for (let i = 0; i < depth.length; i++) {
      const x0 = Math.max((from[i] - state.from) * scale, 0), x1 = Math.min((from[i] + width[i] - state.from) * scale, across);
      if (x1 - x0 < 0.4) continue;
      const y = depth[i] * FRAME + 1;
      pen.globalAlpha = state.wanted && !hit[name[i]] ? 0.25 : 1;
      pen.fillStyle = paint[kind[i]];
      pen.fillRect(x0, y, Math.max(x1 - x0 - 0.7, 0.4), FRAME - 1);
      if (x1 - x0 > 26) {
        pen.fillStyle = { 3: inverse, 5: colour('--on-comm'), 6: colour('--on-mem') }[kind[i]] || text;
        pen.fillText(fitted(pen, shortName(graph.names[name[i]]), x1 - x0 - 8), x0 + 4, y + FRAME / 2 - 0.5);
      }
      if (i === state.chosen) {
        pen.strokeStyle = text;
        pen.lineWidth = 2;
        pen.strokeRect(x0 + 1, y + 1, Math.max(x1 - x0 - 2.7, 1), FRAME - 3);
      }
    }
    pen.globalAlpha = 1;
  };
  const choose = (i) => {
    state.chosen = i;
    chosen.textContent = i >= 0 ? describe(i) : words.nothing;
    draw();
  };
  const focus = (i) => {
    state.from = i >= 0 ? from[i] : 0;
    state.to = i >= 0 ? from[i] + Math.max(width[i], 1) : graph.total;
    draw();
  };
  const under = (event) => {
    const area = canvas.getBoundingClientRect();
    const t = state.from + (event.clientX - area.left) / area.width * (state.to - state.from);
    return frameAt(Math.floor((event.clientY - area.top - 1) / FRAME), t);
  };
  const sibling = (by) => {
    const frames = byDepth[depth[state.chosen]];
    const next = frames[frames.indexOf(state.chosen) + by];
    return next === undefined ? state.chosen : next;
  };
  const child = () => {
    const i = state.chosen, frames = byDepth[depth[i] + 1] || [];
    const inside = frames.filter((f) => from[f] >= from[i] && from[f] + width[f] <= from[i] + width[i]);
    return inside.reduce((best, f) => width[f] > width[best] ? f : best, inside.length ? inside[0] : i);
  };
  const parent = () => depth[state.chosen] ? frameAt(depth[state.chosen] - 1, from[state.chosen]) : state.chosen;
  const start = (move) => () => choose(state.chosen < 0 ? byDepth[0][0] : move());
  const acts = { ArrowLeft: start(() => sibling(-1)), ArrowRight: start(() => sibling(1)), ArrowDown: start(child), ArrowUp: start(parent),
    Enter: () => state.chosen >= 0 && focus(state.chosen), Escape: () => { choose(-1); focus(-1); } };
  canvas.addEventListener('keydown', (event) => {
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
  canvas.addEventListener('click', (event) => {
    const i = under(event);
    choose(i);
    if (i >= 0) focus(i);
  });
  canvas.addEventListener('pointermove', (event) => {
    const i = under(event), area = box.getBoundingClientRect();
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.textContent = describe(i);
    tip.style.left = `${Math.min(event.clientX - area.left + 14, area.width - Math.min(tip.offsetWidth, area.width))}px`;
    tip.style.top = `${event.clientY - area.top + 16}px`;
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  whole.addEventListener('click', acts.Escape);
  input.addEventListener('input', () => {
    state.wanted = input.value.trim().toLocaleLowerCase();
    graph.names.forEach((n, i) => { hit[i] = state.wanted !== '' && n.toLocaleLowerCase().includes(state.wanted); });
    let time = 0, count = 0;
    const found = [];
    depth.forEach((d, i) => { if (hit[name[i]]) found.push(i); });
    found.sort((a, b) => from[a] - from[b] || depth[a] - depth[b]);
    let reach = -1;
    for (const i of found) {
      count++;
      if (from[i] >= reach) {
        time += width[i];
        reach = from[i] + width[i];
      }
    }
    told.textContent = state.wanted ? say('found', { n: number(count), p: percent(time / graph.total) }) : '';
    draw();
  });
  redrawn.push(draw);
  draw();
};
