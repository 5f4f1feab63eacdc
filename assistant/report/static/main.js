const root = document.documentElement;
const print = (on) => {
  root.classList.toggle('printing', on);  // light, and as wide as paper, before anything is drawn anew
  if (on) {
    for (const details of document.querySelectorAll('details:not([open])')) {
      details.open = true;
      details.dataset.shut = '';
    }
  } else {
    for (const details of document.querySelectorAll('details[data-shut]')) {
      details.open = false;
      delete details.dataset.shut;
    }
  }
  redraw();
};
const main = async () => {
  tables();
  if (!('DecompressionStream' in window)) {
    const told = document.getElementById('too-old');
    told.textContent = words.old;
    told.hidden = false;
    return;
  }
  columns = await inflate('columns');
  if (values.timeline) timeline();
  values.flames.forEach((f, n) => flame(f, n));
  await charts();
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (window.innerWidth !== width) {
      width = window.innerWidth;
      redraw();
    }
  });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  window.matchMedia('print').addEventListener('change', redraw);
};
window.addEventListener('beforeprint', () => print(true));
window.addEventListener('afterprint', () => print(false));
main().then(() => { root.dataset.ready = 'yes'; }, (error) => {
  root.dataset.ready = 'failed';
  console.error(error);
});
