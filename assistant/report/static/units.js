const values = JSON.parse(document.getElementById('values').textContent);
const words = values.words;
const say = (key, fields) => Object.entries(fields || {}).reduce((t, [k, v]) => t.replace(`{${k}}`, () => String(v)), words[key]);
const digits = (x) => {
  const a = Math.abs(x);
  return a === 0 ? '0' : x.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3);
};
const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const duration = (ns) => {
  const a = Math.abs(ns);
  if (a < 1) return '0';
  const [scale, unit] = UNITS.find(([s]) => a >= 0.9995 * s) || UNITS[3];
  return scale === 1 ? `${Math.round(ns)} ns` : `${digits(ns / scale)} ${unit}`;
};
const percent = (x) => x > 0 && x < 0.001 ? '<0.1 %' : `${(100 * x).toFixed(1)} %`;
const number = (n) => n.toLocaleString(values.lang === 'zh' ? 'zh-CN' : 'en');
const make = (tag, attributes, text) => {
  const element = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) element.setAttribute(k, v);
  if (text !== undefined) element.textContent = text;
  return element;
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let columns = null;
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };
const column = (name) => {
  const [type, offset, length] = values.columns[name];
  return new TYPES[type](columns, offset, length);
};
const inflate = async (id) => {
  const text = atob(document.getElementById(id).textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
};
const firstAbove = (array, low, high, x) => {  // first index in [low, high) with array[i] > x
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
};
const surface = (canvas, width, height) => {  // a canvas in CSS pixels, sharp on any screen
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
};
const FONT = '11px system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif';
const fitted = (pen, text, width) => {  // the text, or its beginning with an ellipsis, or nothing
  if (width < 18) return '';
  const most = Math.floor(width / 4.2);
  let shown = text.length > most ? text.slice(0, most) : text;
  if (pen.measureText(shown).width <= width && shown === text) return shown;
  while (shown.length > 1 && pen.measureText(shown + '…').width > width) shown = shown.slice(0, Math.floor(shown.length * 0.92));
  return shown.length > 1 ? shown + '…' : '';
};
const redrawn = [];  // what draws itself anew when colours or sizes change
const redraw = () => redrawn.forEach((draw) => draw());
