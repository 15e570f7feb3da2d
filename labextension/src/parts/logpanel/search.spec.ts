import { expect, it } from 'vitest';
import { find, LogSearch } from './search';

function page(...blocks: string[]): HTMLElement {
  const content = document.createElement('div');
  content.innerHTML = blocks.map(block => `<div>${block}</div>`).join('');
  return content;
}

it('finds text across the spans of colours, not across blocks', () => {
  const content = page('lo<span>ss 0</span>.5', 'LOSS 0.25', 'lo', 'ss');
  const found = find(content, 'loss 0');
  expect(found.map(({ range }) => range.toString())).toEqual(['loss 0', 'LOSS 0']);
});

it('takes what is typed literally', () => {
  expect(find(page('a.c abc [x'), 'a.c')).toHaveLength(1);
  expect(find(page('a.c abc [x'), '[x')).toHaveLength(1);
});

it('begins at the end, goes around, and keeps its place when a block is rendered again', () => {
  const content = page('x 1', 'x 2', 'x 3');
  const search = new LogSearch(content);
  search.query = 'x';
  expect([search.position, search.count]).toEqual([3, 3]);
  search.move(1);
  search.move(1);
  expect(search.position).toBe(2);
  content.children[1].innerHTML = '<pre>x 2 x</pre>';
  search.refresh();
  expect([search.position, search.count]).toEqual([2, 4]);
  search.query = '';
  expect([search.position, search.count]).toEqual([0, 0]);
  search.dispose();
});

it('keeps what a step has found, which is announced, while the log grows', () => {
  const content = page('x 1', 'x 2');
  const search = new LogSearch(content);
  search.query = 'x';
  expect(search.found).toBe('2/2');
  content.append(...page('x 3', 'x 4').children);
  search.refresh();
  expect([search.position, search.count, search.found]).toEqual([2, 4, '2/2']);
  search.move(1);
  expect(search.found).toBe('3/4');
  search.query = 'none';
  expect(search.found).toBe('0/0');
  search.query = '';
  expect(search.found).toBe('');
  search.dispose();
});
