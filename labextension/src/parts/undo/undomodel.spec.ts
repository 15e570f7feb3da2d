import { Signal } from '@lumino/signaling';
import { afterEach, describe, expect, it } from 'vitest';
import type { IExecution, IGroup, IUndoableCell } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';
import { UndoModel, undoneWith } from './undomodel';

const cell = (id: string, ranks: string): IUndoableCell => ({
  execution_id: id,
  execution_count: 1,
  ranks,
  cell_id: null,
  notebook: null,
  line: '',
  cost: { bytes: 8, milliseconds: 1, not_kept: [] }
});

describe('undoneWith', () => {
  const cells = [cell('d', '3'), cell('c', '0-1'), cell('b', '1-2'), cell('a', '2')];

  it('has the cells that ran later on some of the ranks, also by way of each other', () => {
    expect(undoneWith(cells, 'a').map(({ execution_id: id }) => id)).toEqual(['c', 'b', 'a']);
    expect(undoneWith(cells, 'c').map(({ execution_id: id }) => id)).toEqual(['c']);
    expect(undoneWith(cells, 'gone')).toEqual([]);
  });
});

describe('UndoModel', () => {
  let model: UndoModel;

  afterEach(() => model.dispose());

  it('asks about a group that is followed, and again when cells have ended there', async () => {
    const changed = new Signal<object, void>({});
    const group = { id: 'g', running: [] as string[], ranks: [{ state_at: 1 }] };
    const other = { ...group, id: 'other' };
    const executions = [{ id: 'a', undo: { bytes: 8, milliseconds: 1, not_kept: [] }, undone_at: 5 }, { id: 'b' }];
    let asked = 0;
    const service = {
      undoable: async () => ({ cells: [cell(`c${(asked += 1)}`, '0')], undone: [cell('a', '0')] }),
      executions: async () => ({ executions: executions as unknown as IExecution[] })
    };
    model = new UndoModel(service, { groups: [group, other], changed } as unknown as IDistGroups);
    const settled = async (): Promise<void> => {
      await new Promise(resolve => setTimeout(resolve));
    };
    changed.emit();
    await settled();
    expect(asked).toBe(0);
    model.follow(group as unknown as IGroup);
    model.follow(group as unknown as IGroup);
    await settled();
    expect(asked).toBe(1);
    expect(model.cells('g')[0].execution_id).toBe('c1');
    expect(model.undone('g').map(({ execution_id: id }) => id)).toEqual(['a']);
    expect(model.noteOn('g', 'a')?.undoneAt).toBe(5);
    expect(model.noteOn('g', 'b')).toBeNull();
    changed.emit();
    group.ranks = [{ state_at: 2 }];
    group.running = ['c'];
    changed.emit();
    await settled();
    expect(asked).toBe(1);
    group.running = [];
    changed.emit();
    await settled();
    expect(asked).toBe(2);
    expect(model.cells('other')).toEqual([]);
  });
});
