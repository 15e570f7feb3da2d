import { CodeCellModel } from '@jupyterlab/cells';
import { Signal } from '@lumino/signaling';
import { afterEach, expect, it, vi } from 'vitest';
import { Awareness } from 'y-protocols/awareness';
import * as Y from 'yjs';
import type { IExecution, IRanksBundle, IViewItem } from '../../../services/protocol';
import type { IDistExecutions } from '../../../tokens';
import { bundleOutput } from '../../outputs/bundle';
import { Authors } from './authors';
import { savedBundle } from './celloutput';
import { LateOutput } from './lateoutput';

afterEach(() => void vi.useRealTimers());

it('what widgets print after the end of a cell is written by the page that submitted it, if it is not the first', async () => {
  vi.useFakeTimers();
  const awareness = new Awareness(new Y.Doc());
  const other = awareness.clientID - 1; // another page, which comes before this one
  awareness.states.set(other, { jupyter_dist: {} });
  const group = { id: 'g-0123abcd', name: 'train', world_size: 1 };
  const execution = {
    id: 'e-0123456789ab',
    group: group.id,
    ranks: '0',
    state: 'ok',
    statuses: [],
    error: null
  } as unknown as IExecution;
  const saved = {
    version: 1,
    group,
    execution_id: execution.id,
    ranks: '0',
    state: 'ok',
    statuses: [],
    items: []
  } as unknown as IRanksBundle;
  const item = {
    id: 1,
    seq: 1,
    ranks: '0',
    output: { output_type: 'stream', name: 'stdout', text: 'late\n' }
  } as unknown as IViewItem;
  const followed = { execution, items: [item], changed: new Signal<object, void>({}) };
  const executions = { follow: () => ({ followed, dispose: () => undefined }) } as unknown as IDistExecutions;
  const authors = new Authors({ awareness });
  /** Whether this page writes what is printed. */
  const writes = async (): Promise<boolean> => {
    const cell = new CodeCellModel({});
    cell.outputs.add(bundleOutput(saved));
    const late = new LateOutput(executions, saved, () => cell, authors);
    followed.changed.emit();
    await vi.advanceTimersByTimeAsync(2000);
    const { length } = savedBundle(cell)!.items;
    late.dispose();
    return length === 1;
  };
  expect(await writes()).toBe(false); // the other page has opened the notebook earlier
  authors.claim(execution.id, 'cell');
  authors.release(execution.id);
  expect(await writes()).toBe(true);
  // Of two pages that keep it, the first does.
  awareness.states.set(other, { jupyter_dist: {}, jupyter_dist_late: [execution.id] });
  expect(await writes()).toBe(false);
  expect(awareness.getLocalState()).toMatchObject({ jupyter_dist_late: [] });
  authors.dispose();
  awareness.destroy();
});
