import { Signal } from '@lumino/signaling';
import { expect, it } from 'vitest';
import type { IExecution } from '../../services/protocol';
import type { IFollowedExecution } from '../../tokens';
import { ILongCell, LongCells } from './longcells';

const NOW = Date.now() / 1000;
/** How much the server's clock is behind the browser's. */
const BEHIND = 600;
const WAITS = 'rank 0 waits';
/** As a part would know it; here it is in another field. */
const cannotEnd = ({ warning }: IExecution): string | null => warning ?? null;

/** Follows one execution through these states; what was noticed. */
function follow(states: Partial<IExecution>[], longSeconds = 60): string[] {
  const sender = {};
  const followedSignal = new Signal<object, string>(sender);
  const followed = { execution: null as IExecution | null };
  const changed = new Signal<typeof followed, unknown>(followed);
  const executions = { followed: followedSignal, find: () => followed as unknown as IFollowedExecution };
  const said: string[] = [];
  const cells = new LongCells(executions as never, { now: () => NOW - BEHIND }, () => longSeconds, cannotEnd);
  cells.noticed.connect((_, { execution, cannotEnd, seconds }: ILongCell) =>
    said.push(`${execution.state} ${cannotEnd} ${Math.round(seconds)}`)
  );
  cells.outdated.connect((_, { state }) => said.push(`${state} outdated`));
  Object.assign(followed, { changed });
  followedSignal.emit('x');
  for (const state of states) {
    const started = { silent: false, started_at: NOW, ended_at: null, warning: null };
    followed.execution = { ...started, ...state } as IExecution;
    changed.emit(followed as never as IFollowedExecution);
  }
  cells.dispose();
  return said;
}

it('notices long cells that end, once', () => {
  const end = { state: 'error', ended_at: NOW + 70 } as const;
  expect(follow([{ state: 'running' }, end, end])).toEqual(['error null 70']);
  expect(follow([{ state: 'running' }, { ...end, ended_at: NOW + 50 }])).toEqual([]);
  expect(follow([{ state: 'running' }, end], 0)).toEqual([]);
});

it('says nothing of what had ended before, or is silent', () => {
  expect(follow([{ state: 'ok', started_at: NOW - 500, ended_at: NOW - 100 }])).toEqual([]);
  expect(
    follow([
      { state: 'running', silent: true },
      { state: 'ok', ended_at: NOW + 1000, silent: true }
    ])
  ).toEqual([]);
});

it('notices a cell that cannot end, once each time', () => {
  const hangs = { state: 'running', warning: WAITS } as const;
  const said = follow([{ state: 'running' }, hangs, hangs, { state: 'running' }, hangs]);
  expect(said.map(text => text.split(' ').slice(0, 4).join(' '))).toEqual([
    'running rank 0 waits',
    'running outdated',
    'running rank 0 waits'
  ]);
});

it('does not compare the times of the server with the clock of the browser', () => {
  const past = { started_at: NOW - BEHIND - 70, ended_at: NOW - BEHIND } as const;
  expect(
    follow([
      { ...past, state: 'running', ended_at: null },
      { ...past, state: 'ok' }
    ])
  ).toEqual(['ok null 70']);
  expect(follow([{ state: 'running', started_at: past.started_at, warning: WAITS }])).toEqual([
    'running rank 0 waits 70'
  ]);
  expect(follow([{ state: 'ok', started_at: NOW + 500, ended_at: NOW + 600 }])).toEqual([]);
});

it('notices the end of a cell that could not end, however short it was', () => {
  const said = follow([
    { state: 'running', warning: WAITS },
    { state: 'interrupted', ended_at: NOW + 2 },
    { state: 'interrupted', ended_at: NOW + 2 }
  ]);
  expect(said.slice(1)).toEqual(['interrupted outdated']);
});

it('takes back what it has noticed of a cell when that runs again, and not when another does', () => {
  const ran = (id: string, cell: string, state: 'running' | 'error' | 'ok'): Partial<IExecution> => {
    return { id, cell_id: cell, group: 'g', state, ended_at: state === 'running' ? null : NOW + 70 };
  };
  const followed = new Signal<object, string>({});
  const entries = new Map<string, IFollowedExecution>();
  const executions = { followed, find: (id: string) => entries.get(id) ?? null };
  const said: string[] = [];
  const cells = new LongCells(executions as never, { now: () => NOW }, () => 60, cannotEnd);
  cells.noticed.connect((_, { execution }) => said.push(`${execution.id} noticed`));
  cells.outdated.connect((_, { id }) => said.push(`${id} outdated`));
  const run = (id: string, cell: string, end: 'error' | 'ok'): void => {
    const entry = { execution: null } as { execution: IExecution | null };
    const changed = new Signal<object, unknown>(entry);
    entries.set(id, Object.assign(entry, { changed }) as never);
    followed.emit(id);
    for (const state of ['running', end] as const) {
      entry.execution = { silent: false, started_at: NOW, warning: null, ...ran(id, cell, state) } as IExecution;
      changed.emit(undefined);
    }
  };
  run('e1', 'a', 'error');
  run('e2', 'b', 'ok');
  run('e3', 'b', 'error');
  run('e4', 'b', 'ok');
  cells.dispose();
  expect(said).toEqual(['e1 noticed', 'e2 noticed', 'e2 outdated', 'e3 noticed', 'e3 outdated', 'e4 noticed']);
});
