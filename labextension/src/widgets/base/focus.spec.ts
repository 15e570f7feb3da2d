import { expect, it } from 'vitest';
import { mayTakeFocus } from './focus';

it('is taken where nothing has it, or from within, and never from where the user went', () => {
  document.body.innerHTML = '<div id="toolbar"><button></button></div><textarea></textarea>';
  const toolbar = document.getElementById('toolbar')!;
  const [button, cell] = [toolbar.querySelector('button')!, document.querySelector('textarea')!];
  button.focus();
  expect(mayTakeFocus(toolbar)).toBe(true);
  button.remove();
  expect(mayTakeFocus(toolbar)).toBe(true);
  cell.focus();
  expect(mayTakeFocus(toolbar)).toBe(false);
  document.body.innerHTML = '';
});
