import { describe, expect, it } from 'vitest';
import { RANKS_MIME } from '../../services/protocol';
import { bundleOutput } from './bundle';
import { parseBundle, readBundle } from './parsebundle';

const stream = { output_type: 'stream', name: 'stdout', text: 'a\n' };

/** As the server would have written it, but for `more`. */
function bundle(more: object = {}): object {
  return {
    version: 1,
    group: { id: 'g-0123abcd', name: 'train', world_size: 2 },
    execution_id: 'e-0123456789ab',
    ranks: '0-1',
    state: 'ok',
    statuses: [{ ranks: '0-1', status: 'ok', seconds: 1 }],
    started_at: 1,
    ended_at: 2,
    items: [
      { ranks: '0-1', output: stream },
      { ranks: '1', elided: { bytes: 7, lines: 2 } },
      { ranks: '0', output: { output_type: 'display_data', data: { 'text/plain': 'x' }, metadata: {} } },
      { ranks: '0', output: { output_type: 'error', ename: 'E', evalue: 'v', traceback: ['t'] } }
    ],
    ...more
  };
}

describe('parseBundle', () => {
  it('reads what was written', () => {
    const written = parseBundle(bundle())!;
    expect(written).toEqual(bundle());
    expect(readBundle(bundleOutput(written))).toEqual(written);
  });

  it('keeps a sound error and nothing that it does not know', () => {
    const error = { code: 'lost', message: 'Gone.', hint: '' };
    const read = parseBundle({ ...bundle({ error }), secret: 1 });
    expect(read).toEqual(bundle({ error }));
    expect(parseBundle(bundle({ error: null }))).not.toHaveProperty('error');
  });

  it('keeps the checksum of the cell, if it is one', () => {
    expect(parseBundle(bundle({ code_checksum: '0123abcd' }))).toHaveProperty('code_checksum', '0123abcd');
    for (const forged of ['0123ABCD', '0123abcd\n', '', 5, null]) {
      expect(parseBundle(bundle({ code_checksum: forged }))).toEqual(bundle());
    }
  });

  const id = (more: object) => ({ group: { id: 'g-0', name: 'n', world_size: 2, ...more } });
  const item = (more: object) => ({ items: [{ ranks: '0', output: stream, ...more }] });
  const hostile: [string, object][] = [
    ['an id that is a path upwards', { execution_id: '..' }],
    ['an id that is a longer path', { execution_id: 'e-0/../../x' }],
    ['an id that fills a message', { execution_id: `e-${'0'.repeat(70000)}` }],
    ['an id with a line end', { execution_id: 'e-0\n' }],
    ['a group id that is a path upwards', id({ id: '..' })],
    ["a group's name as its id", id({ id: 'train' })],
    ['a group id that is no string', id({ id: 3 })],
    ['a group that is none', { group: null }],
    ['a name that is no string', id({ name: { toString: 'x' } })],
    ['a size that is no number', id({ world_size: '1e300' })],
    ['a size beyond reason', id({ world_size: 9007199254740992 })],
    ['ranks as a float', { ranks: '1e300' }],
    ['ranks without end', { ranks: 'Infinity' }],
    ['ranks beyond exact numbers', { ranks: '9007199254740992' }],
    ['ranks over and over', { ranks: Array(2000).fill('0-65535').join() }],
    ['ranks that are a list', { ranks: [0, 1] }],
    ['a state that is a sentence', { state: '<b>ok</b>' }],
    ['a time that is text', { started_at: 'yesterday' }],
    ['a time without end', { ended_at: Infinity }],
    ['statuses that are none', { statuses: {} }],
    ['a status of too many', { statuses: Array(3).fill({ ranks: '0-4000', status: 'ok', seconds: 1 }) }],
    ['seconds that are text', { statuses: [{ ranks: '0', status: 'ok', seconds: '1' }] }],
    ['items that are none', { items: { length: 1 } }],
    ['an item that is none', { items: [null] }],
    ['an item without ranks', item({ ranks: 'x' })],
    ['a count below nothing', { items: [{ ranks: '0', elided: { bytes: -1, lines: 1 } }] }],
    ['an output of no kind', item({ output: { output_type: 'update_display_data', data: {} } })],
    ['a stream to nowhere', item({ output: { ...stream, name: 'x' } })],
    ['text that is none', item({ output: { ...stream, text: { length: 3 } } })],
    ['data that is none', item({ output: { output_type: 'display_data', data: null } })],
    ['a traceback that is none', item({ output: { output_type: 'error', ename: 'a', evalue: 'b', traceback: 1 } })],
    ['an error that is none', { error: 'bad' }],
    ['an error without words', { error: { code: 'x', message: 3 } }],
    ['another version', { version: 2 }]
  ];
  for (const [name, more] of hostile) {
    it(`refuses ${name}`, () => {
      expect(parseBundle(bundle(more))).toBeNull();
    });
  }

  it('refuses what is no bundle', () => {
    for (const value of [null, undefined, 3, 'x', [], {}, { items: [] }]) {
      expect(parseBundle(value)).toBeNull();
    }
    expect(readBundle(undefined)).toBeNull();
    expect(readBundle({ output_type: 'display_data', data: { [RANKS_MIME]: 3 } })).toBeNull();
  });
});
