const keyOf = (cell) => {
  if (cell.classList.contains('n')) return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
  return cell.textContent;
};
const compare = (a, b, down) => {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;  // what is not known stands last either way
  const order = typeof a === 'number' ? a - b : a.localeCompare(b, undefined, { numeric: true });
  return down ? -order : order;
};
const sortBy = (table, index) => {
  const head = table.tHead.rows[0].cells;
  const now = head[index].getAttribute('aria-sort');
  const numeric = head[index].classList.contains('n');
  const down = now === 'none' ? numeric : now === 'ascending';
  for (const cell of head) cell.setAttribute('aria-sort', 'none');
  head[index].setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[index]), row]);
  rows.sort((a, b) => compare(a[0], b[0], down));
  table.tBodies[0].append(...rows.map((r) => r[1]));
};
const searchable = (table) => {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 6) return;
  const bar = make('div', { class: 'find' });
  const input = make('input', { type: 'search', 'aria-label': `${words.search}: ${table.caption.textContent}`, placeholder: words.search });
  const told = make('span', { class: 'soft', role: 'status' });
  input.addEventListener('input', () => {
    const wanted = input.value.trim().toLocaleLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = ![...row.cells].some((cell) => cell.textContent.toLocaleLowerCase().includes(wanted));
      shown += row.hidden ? 0 : 1;
    }
    told.textContent = wanted ? say('rows', { n: number(shown), all: number(rows.length) }) : '';
  });
  bar.append(input, told);
  table.parentElement.before(bar);
};
const tables = () => {
  for (const table of document.querySelectorAll('table.tools')) {
    [...table.tHead.rows[0].cells].forEach((cell, index) => {
      const button = make('button', { type: 'button' }, cell.textContent);
      button.addEventListener('click', () => sortBy(table, index));
      cell.replaceChildren(button);
      cell.setAttribute('aria-sort', 'none');
    });
    searchable(table);
  }
};
