import { describe, expect, it } from 'vitest';
import type { ExecutionState, IExecution, IRanksBundle } from '../../../services/protocol';
import { findAttachments as find, IAttachment, IFoundCell, lostBundle } from './reattach';

function execution(id: string, cell: string, state: ExecutionState, queued_at: number): IExecution {
  return {
    id,
    group: 'g-1',
    ranks: '0-1',
    state,
    cell_id: cell,
    notebook: 'a.ipynb',
    owner: null,
    execution_count: 1,
    queued_at,
    started_at: queued_at,
    ended_at: null,
    statuses: [],
    rank_seconds: {},
    silent: false,
    error: null
  };
}

/** What the server lists, and could be asked for. */
function findAttachments(cells: IFoundCell[], executions: IExecution[], savedAt: number): IAttachment[] {
  return find(cells, { executions, silent: new Set() }, 'a.ipynb', savedAt);
}

function bundle(id: string, state: ExecutionState): IRanksBundle {
  return {
    version: 1,
    group: { id: 'g-1', name: 'train', world_size: 2 },
    execution_id: id,
    ranks: '0-1',
    state,
    statuses: [],
    started_at: 1,
    ended_at: null,
    items: []
  };
}

describe('findAttachments', () => {
  it('leaves alone what is at its end', () => {
    const cells = [{ id: 'a', bundle: bundle('e1', 'ok') }];
    const known = [execution('e1', 'a', 'ok', 5)];
    expect(findAttachments(cells, known, 10)).toEqual([]);
  });

  it('takes up what the file says is running', () => {
    const saved = bundle('e1', 'running');
    const known = [execution('e1', 'a', 'ok', 5)];
    const [found] = findAttachments([{ id: 'a', bundle: saved }], known, 10);
    expect(found.execution?.id).toBe('e1');
    expect(found.saved).toBe(saved);
  });

  it('says of what the server does not list that it is lost', () => {
    const cells = [{ id: 'a', bundle: bundle('e1', 'queued') }];
    const [found] = findAttachments(cells, [], 10);
    expect(found).toMatchObject({ id: 'a', execution: null });
    const statuses = [
      { ranks: '0', status: 'ok' as const, seconds: 1 },
      { ranks: '1', status: 'running' as const, seconds: null }
    ];
    const lost = lostBundle({ ...found.saved!, statuses });
    expect(lost).toMatchObject({ state: 'lost', error: { code: 'lost' } });
    expect(lost.statuses.map(({ status }) => status)).toEqual(['ok', 'lost']);
  });

  it('asks the server about nothing that it does not list for that group', () => {
    const known = [{ ...execution('e1', 'z', 'running', 5), group: 'g-2' }];
    const [found] = findAttachments([{ id: 'a', bundle: bundle('e1', 'running') }], known, 10);
    expect(found.execution).toBeNull();
  });

  it('says nothing of what a group that does not answer may still run', () => {
    const cells = [{ id: 'a', bundle: bundle('e1', 'running') }];
    expect(find(cells, { executions: [], silent: new Set(['g-1']) }, 'a.ipynb', 10)).toEqual([]);
  });

  it('takes up a run of a notebook that was renamed, or copied, by what its cell has saved', () => {
    const known = [{ ...execution('e1', 'a', 'running', 5), notebook: 'old.ipynb' }];
    const [found] = findAttachments([{ id: 'b', bundle: bundle('e1', 'running') }], known, 10);
    expect(found).toMatchObject({ id: 'b', execution: known[0] });
    expect(findAttachments([{ id: 'a', bundle: null }], known, 10)).toEqual([]);
  });

  it('takes up what runs, though the file says nothing', () => {
    const known = [execution('e1', 'a', 'running', 5)];
    const [found] = findAttachments([{ id: 'a', bundle: null }], known, 10);
    expect(found).toMatchObject({ id: 'a', saved: null });
  });

  it('takes up what ended after the file was saved', () => {
    const cells = [{ id: 'a', bundle: bundle('e0', 'ok') }];
    const known = [execution('e0', 'a', 'ok', 5), execution('e1', 'a', 'error', 11)];
    const [found] = findAttachments(cells, known, 10);
    expect(found.execution?.id).toBe('e1');
    expect(found.saved).toBeNull();
  });

  it('does not bring back outputs that were cleared and saved', () => {
    const known = [execution('e1', 'a', 'ok', 5)];
    expect(findAttachments([{ id: 'a', bundle: null }], known, 10)).toEqual([]);
  });

  it('prefers the newest execution of a cell', () => {
    const cells = [{ id: 'a', bundle: bundle('e1', 'running') }];
    const known = [execution('e1', 'a', 'ok', 5), execution('e2', 'a', 'running', 6)];
    const found = findAttachments(cells, known, 10);
    expect(found).toHaveLength(1);
    expect(found[0].execution?.id).toBe('e2');
    expect(found[0].saved).toBeNull();
  });

  it('ignores cells that were aborted, and those of other notebooks', () => {
    const known = [execution('e1', 'a', 'aborted', 11), execution('e2', 'z', 'running', 11)];
    expect(findAttachments([{ id: 'a', bundle: null }], known, 10)).toEqual([]);
  });
});
