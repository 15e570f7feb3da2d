/** Draws the stacks of ranks; loaded when they are first shown. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRankStack, IStackFrame } from '../../../services/protocol';
import { rankSetLabel } from '../../../widgets/rankoutput/items/itemrow';
import { stateOfStack } from './stackstate';

/** The row for a rank, or for ranks at the same line; `isOpen`: with all calls of the stack. */
export function stackEntry(trans: TranslationBundle, stack: IRankStack, isOpen: boolean): HTMLElement {
  const { ranks, frames } = stack;
  const entry = document.createElement('div');
  entry.className = 'jpd-Stack';
  const name = document.createElement('b');
  name.textContent = rankSetLabel(trans, ranks);
  const head = document.createElement('div');
  head.append(name, ` ${stateOfStack(trans, stack)}`);
  entry.append(head, lines(frames.filter(frame => !frame.is_library)));
  if (frames.some(frame => frame.is_library)) {
    const all = document.createElement('details');
    all.dataset.ranks = ranks;
    all.open = isOpen;
    const title = document.createElement('summary');
    title.textContent = trans._n('the whole stack: %1 call', 'the whole stack: %1 calls', frames.length);
    all.append(title, lines(frames));
    entry.append(all);
  }
  return entry;
}

/** One line per call, the innermost last, like a traceback. */
function lines(frames: readonly IStackFrame[]): HTMLElement {
  const list = document.createElement('ol');
  list.append(
    ...frames.map(({ name, file, line, function: called, code, is_library: isLibrary }) => {
      const row = document.createElement('li');
      const place = document.createElement('span');
      place.className = 'jpd-Stack-place';
      place.textContent = `${isLibrary ? shortened(file) : name}:${line} ${called}`;
      place.title = `${file}:${line}`;
      const source = document.createElement('code');
      source.textContent = code;
      row.append(place, ' ', source);
      return row;
    })
  );
  return list;
}

/** From the package on: "torch/nn/modules/module.py". */
function shortened(file: string): string {
  return file.replace(/^.*(?:site|dist)-packages\/|^.*\/lib\/(?=python\d)|^.*\/(?=jupyter_dist\/)/, '');
}
