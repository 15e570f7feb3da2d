import { expect, test } from 'vitest';
import type { IExecution, IRanksSeen } from '../../../services/protocol';
import { bandAt, bandsOf, neighbour, Sights } from './bands';

const execution = (id: string, fields: Partial<IExecution>): IExecution =>
  ({ id, ranks: '0-1', rank_seconds: {}, statuses: [], state: 'ok', ended_at: null, ...fields }) as IExecution;

test('each rank has a band for its part of a cell, with its own end and state', () => {
  const bands = bandsOf([
    execution('late', {
      started_at: 50,
      ranks: '0',
      state: 'running',
      statuses: [{ ranks: '0', status: 'running', seconds: null }]
    }),
    execution('first', {
      started_at: 10,
      ended_at: 16,
      state: 'error',
      rank_seconds: { '0': 2, '1': 6 },
      statuses: [
        { ranks: '0', status: 'ok', seconds: 2 },
        { ranks: '1', status: 'error', seconds: 6 }
      ]
    }),
    execution('lost', {
      started_at: 20,
      ended_at: 25,
      ranks: '1',
      state: 'lost',
      statuses: [{ ranks: '1', status: 'lost', seconds: null }]
    }),
    execution('queued', { started_at: null, state: 'queued' })
  ]);
  expect(bands.get(0)!.map(({ begin, end, state }) => [begin, end, state])).toEqual([
    [10, 12, 'ok'],
    [50, null, 'running']
  ]);
  expect(bands.get(1)!.map(({ begin, end, state }) => [begin, end, state])).toEqual([
    [10, 16, 'error'],
    [20, 25, 'lost']
  ]);
  expect(bandAt(bands.get(0)!, 12.5, 1, 99)!.execution.id).toBe('first');
  expect(bandAt(bands.get(0)!, 30, 1, 99)).toBeNull();
  expect(bandAt(bands.get(0)!, 98, 1, 99)!.execution.id).toBe('late');
  expect(neighbour(bands.get(0)!, 10, 1)!.execution.id).toBe('late');
  expect(neighbour(bands.get(0)!, 50, -1)!.execution.id).toBe('first');
  expect(neighbour(bands.get(0)!, 50, 1)).toBeNull();
});

const seen = (ranks: string, call: string | null): IRanksSeen => ({ ranks, execution_id: 'e', place: 'line 3', call });

test('a rank waited from look to look only if it was in the same call of the same number', () => {
  const sights = new Sights();
  sights.add({ at: 10, seen: [seen('0-1', 'all_reduce, number 4')] });
  sights.add({ at: 13, seen: [seen('0', 'all_reduce, number 4'), seen('1', null)] });
  sights.add({ at: 16, seen: [seen('0', 'all_reduce, number 5'), seen('1', 'all_reduce, number 4')] });
  sights.add({ at: 16, seen: [seen('0-1', 'said again')] });
  const times = (rank: number): number[][] => sights.waits(rank).map(({ begin, end }) => [begin, end]);
  expect(times(0)).toEqual([
    [10, 13],
    [16, 16]
  ]);
  expect(times(1)).toEqual([
    [10, 10],
    [16, 16]
  ]);
  expect(sights.latest(1)).toEqual({ at: 16, execution: 'e', place: 'line 3', call: 'all_reduce, number 4' });
  sights.drop(14);
  expect(times(0)).toEqual([[16, 16]]);
});

test('a call without a number may be another one at the next look', () => {
  const sights = new Sights();
  sights.add({ at: 10, seen: [seen('0', 'recv (peer 1)')] });
  sights.add({ at: 13, seen: [seen('0', 'recv (peer 1)')] });
  expect(sights.waits(0)).toHaveLength(2);
});
