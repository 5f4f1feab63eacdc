const painted = (spec) => {  // a copy in which names of CSS variables are their colours
  if (Array.isArray(spec)) return spec.map(painted);
  if (spec && typeof spec === 'object') return Object.fromEntries(Object.entries(spec).map(([k, v]) => [k, painted(v)]));
  if (spec === 'heat') return [[0, colour('--heat0')], [0.5, colour('--heat1')], [1, colour('--heat2')]];
  return typeof spec === 'string' && /^--[a-z]/.test(spec) ? colour(spec) : spec;
};
const axis = (given) => ({
  gridcolor: colour('--line'), zerolinecolor: colour('--line'), linecolor: colour('--line'), automargin: true,
  ...given, ...(given && given.title ? { title: { font: { size: 13, color: colour('--soft') }, ...given.title } } : {}),
  ...(given && given.rangeslider ? { rangeslider: { ...given.rangeslider, bgcolor: colour('--panel'), bordercolor: colour('--line'), borderwidth: 1 } } : {}),
});
const layoutOf = (spec, width) => {
  const layout = painted(spec.layout);
  return {
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', autosize: false, width, dragmode: 'pan',
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour('--fg') },
    hoverlabel: { bgcolor: colour('--fg'), bordercolor: colour('--fg'), font: { color: colour('--bg') } },
    ...layout, margin: { l: 64, r: 24, t: 24, b: 48, ...(layout.margin || {}) }, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
    ...(layout.yaxis2 ? { yaxis2: axis(layout.yaxis2) } : {}),
  };
};
const CONFIG = { displayModeBar: false, responsive: false, scrollZoom: false, showTips: false, doubleClick: 'reset' };
const charts = async () => {
  const drawn = Object.entries(values.charts);
  if (!drawn.length) return;
  const text = new TextDecoder().decode(await inflate('library'));
  for (const [, id] of text.matchAll(/getElementById\("([0-9a-f]{64})"\)/g)) {  // the style of its maps, which we do not draw
    document.head.append(make('meta', { id }));
  }
  document.head.append(make('script', {}, text));
  const draw = () => Promise.all(drawn.map(([id, spec]) => window.Plotly.react(id, painted(spec.data), layoutOf(spec, document.getElementById(id).clientWidth), CONFIG)));
  redrawn.push(draw);
  await draw();
};
