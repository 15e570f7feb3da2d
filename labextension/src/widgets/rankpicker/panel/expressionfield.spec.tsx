import { nullTranslator } from '@jupyterlab/translation';
import React, { useEffect } from 'react';
import { createRoot, Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ExpressionField } from './expressionfield';

const trans = nullTranslator.load('jupyter_dist');
let node: HTMLElement;
let root: Root;
/** The ranks of the cells, and which of them is active. */
let cells: string[];
let active: number;

/** Draw the field, which a busy page does long after a choice. */
async function draw(): Promise<void> {
  const onEdit = (): ((ranks: string) => void) => {
    const cell = active;
    return ranks => void (cells[cell] = ranks);
  };
  await new Promise<void>(drawn =>
    root.render(
      <>
        <ExpressionField value={cells[active]} current={() => cells[active]} {...{ trans, onEdit }} group={null} />
        <Drawn then={drawn} />
      </>
    )
  );
  await new Promise(resolve => setTimeout(resolve, 30)); // what effects have set
}

/** Its effect runs after those of the field. */
function Drawn({ then }: { then(): void }): null {
  useEffect(then);
  return null;
}

const field = (): HTMLInputElement => node.querySelector('input')!;

function type(text: string): void {
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!.call(field(), text);
  field().dispatchEvent(new Event('input', { bubbles: true }));
}

const press = (key: string): boolean =>
  field().dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));

beforeEach(async () => {
  node = document.createElement('div');
  document.body.append(node);
  root = createRoot(node);
  [cells, active] = [['all', 'all'], 0];
  await draw();
  field().focus();
});
afterEach(() => {
  root.unmount();
  node.remove();
});

it('keeps what is typed while the last choice is not drawn yet', async () => {
  type('3');
  press('Enter');
  expect(cells[0]).toBe('3');
  type('0-1');
  await draw(); // only now with rank 3
  expect(field().value).toBe('0-1');
  active = 1; // a click into another cell makes that active first
  field().blur();
  expect(cells).toEqual(['0-1', 'all']);
  await draw();
  await expect.poll(() => field().value).toBe('all');
});

it('takes two choices in a row, the second of which is what is still drawn', async () => {
  type('3');
  press('Enter');
  type('all');
  press('Enter');
  expect(cells[0]).toBe('all');
  await draw();
  await expect.poll(() => field().value).toBe('all');
});

it('shows a choice that was made elsewhere in place of unfinished text', async () => {
  type('0-');
  cells[0] = '2';
  await draw();
  await expect.poll(() => field().value).toBe('2');
  field().blur();
  expect(cells[0]).toBe('2');
});
