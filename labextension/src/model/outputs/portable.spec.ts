import { expect, it } from 'vitest';
import vectors from '../../../../tests/vectors/portable.json';
import type { IOutput } from '@jupyterlab/nbformat';
import type { IRanksBundle, ISavedItem } from '../../services/protocol';
import { bundleOutput } from './bundle';
import { parseBundle, readBundle } from './parsebundle';
import { hasParts, joinParts, portableOutputs } from './portable';

const PNG = 'iVBORw0KGgo='.repeat(200);

const bundle = (items: ISavedItem[], more: object = {}): IRanksBundle =>
  ({
    version: 1,
    group: { id: 'g-0123abcd', name: 'train', world_size: 2 },
    execution_id: 'e-0123456789ab',
    ranks: '0-1',
    state: 'ok',
    statuses: [{ ranks: '0-1', status: 'ok', seconds: 1 }],
    started_at: 1,
    ended_at: 2,
    items,
    ...more
  }) as IRanksBundle;
const said = (ranks: string, text: string): ISavedItem => ({
  ranks,
  output: { output_type: 'stream', name: 'stdout', text }
});
const shown = (ranks: string, data: object): ISavedItem => ({
  ranks,
  output: { output_type: 'display_data', data, metadata: {} } as IOutput
});
const figure = (ranks: string, png = PNG): ISavedItem => shown(ranks, { 'image/png': png, 'text/plain': '<Figure>' });
const table = (ranks: string, html: string): ISavedItem => shown(ranks, { 'text/html': html, 'text/plain': 'a table' });
const failed = (ranks: string): ISavedItem => ({
  ranks,
  output: {
    output_type: 'error',
    ename: 'ValueError',
    evalue: 'bad',
    traceback: ['\u001b[31mValueError\u001b[0m: bad']
  }
});

/** What is in the file, as it is read again. */
function read(outputs: IOutput[]): IRanksBundle | null {
  const file = JSON.parse(JSON.stringify(outputs)) as IOutput[];
  const own = readBundle(file[0]);
  return own && joinParts(own, file.slice(1));
}

const mixed = [
  said('0-1', 'begin\n'),
  figure('0'),
  figure('1', 'other'),
  said('0', 'between\n'),
  table('1', '<table></table>'),
  failed('0')
];

it('reads back what it writes', () => {
  for (const items of [
    [],
    [said('0-1', 'only text\n')],
    mixed,
    [figure('0'), figure('1')],
    [{ ranks: '0', elided: { bytes: 1, lines: 2 } }]
  ]) {
    expect(read(portableOutputs(bundle(items)))).toEqual(parseBundle(bundle(items)));
  }
  // An output that was saved before.
  expect(read([bundleOutput(bundle(mixed))])).toEqual(parseBundle(bundle(mixed)));
});

it('shows in any reader what ranks printed, their figures, tables and errors, in order and with their labels', () => {
  const outputs = portableOutputs(
    bundle(mixed, { state: 'error', error: { code: 'x', message: 'It failed.', hint: '' } })
  );
  const seen = outputs.map(({ output_type, data }) => {
    const { 'text/html': html, ...rest } = (data ?? {}) as Record<string, string>;
    return output_type === 'error'
      ? 'error'
      : (rest['image/png'] ?? (rest['text/plain'] === 'a table' ? html : rest['text/plain']));
  });
  expect(seen).toEqual([
    '[ranks 0-1]\nbegin\n[rank 0]',
    PNG,
    '[rank 1]',
    'other',
    '[rank 0]\nbetween\n[rank 1]',
    '<table></table>',
    '[rank 0]',
    'error',
    '[error] It failed.'
  ]);
});

it('saves equal figures of several ranks once', () => {
  const outputs = portableOutputs(bundle([figure('0'), said('0', 'x\n'), figure('1')]));
  expect(JSON.stringify(outputs).split(PNG)).toHaveLength(2);
  expect((outputs[0].data as Record<string, string>)['text/plain']).toBe('[ranks 0-1]');
});

it('has no HTML of ours that is not escaped', () => {
  const evil = '<script>alert(1)</script>"\'&';
  const items = [said('0', `${evil}\n`), said('1', `${evil}\n`), figure('0'), figure('0', 'x')];
  const outputs = portableOutputs(bundle(items, { state: 'lost', error: { code: 'x', message: evil, hint: evil } }));
  const htmls = outputs.map(({ data }) => (data as Record<string, string>)['text/html'] ?? '');
  expect(htmls.join('')).toContain('&lt;script&gt;');
  expect(
    htmls.join('').replace(/<\/?(details|summary|b|pre|div)( open| style="font-family:monospace")?>/g, '')
  ).not.toMatch(/[<>"']/);
  // HTML that a rank displayed stays as it is, in an output of its own.
  const [, own] = portableOutputs(bundle([table('0', evil)]));
  expect((own.data as Record<string, string>)['text/html']).toBe(evil);
});

it('is not much larger than before', () => {
  const lines = (count: number): ISavedItem[] =>
    [...Array(count).keys()].map(i => said(String(i % 2), `step ${i}: loss 0.${i}\n`));
  for (const items of [[], [said('0-1', 'hi\n')], lines(20), lines(2000), mixed, [...lines(50), failed('0-1')]]) {
    const before = JSON.stringify(bundleOutput(bundle(items))).length;
    expect(JSON.stringify(portableOutputs(bundle(items))).length / before).toBeLessThan(1.3);
  }
});

it('takes no output for its own that is of another execution, or missing', () => {
  const outputs = portableOutputs(bundle([figure('0')]));
  const own = readBundle(outputs[0])!;
  expect(hasParts(own)).toBe(true);
  expect(joinParts(own, [])).toBeNull();
  expect(joinParts({ ...own, execution_id: 'e-1' }, outputs.slice(1))).toBeNull();
  expect(joinParts(own, [{ output_type: 'display_data', data: 3 } as unknown as IOutput])).toBeNull();
  for (const part of [0, -1, 1.5, '1', 1e9, null]) {
    expect(parseBundle({ ...own, items: [{ ranks: '0', part }] })).toBeNull();
  }
});

it.each(vectors)('is the same in Python: $name', vector => {
  const { bundle, outputs } = vector as unknown as { bundle: IRanksBundle; outputs: IOutput[] };
  expect(portableOutputs(bundle)).toEqual(outputs);
});

it.each(vectors)('reads what a kernel writes, also with other outputs between it: $name', vector => {
  const { bundle, displays } = vector as unknown as { bundle: IRanksBundle; displays: IOutput[] };
  const [first, ...parts] = displays;
  const after = parts.flatMap(part => [
    { output_type: 'stream', name: 'stderr', text: 'of the kernel' } as IOutput,
    part
  ]);
  const joined = joinParts(readBundle(first)!, after)!;
  const flat = ({ items }: IRanksBundle): unknown =>
    JSON.parse(JSON.stringify(items, (key, value) => (key === 'traceback' ? value.join('\n') : value)));
  expect(flat(joined)).toEqual(flat(parseBundle(bundle)!));
});

it('takes a mark of a kernel that is not sound for no output', () => {
  const { bundle, displays } = vectors[2] as unknown as { bundle: IRanksBundle; displays: IOutput[] };
  const own = readBundle(displays[0])!;
  for (const error of [null, 3, {}, { ename: 1, evalue: 2 }]) {
    const bad = displays.slice(1).map(({ data, ...rest }) => {
      const { 'application/vnd.jupyter-dist.part+json': mark, ...others } = data as Record<string, object>;
      return {
        ...rest,
        data: { ...others, 'application/vnd.jupyter-dist.part+json': 'error' in mark ? { ...mark, error } : mark }
      } as unknown as IOutput;
    });
    expect(joinParts(own, bad)).toBeNull();
  }
  expect(joinParts({ ...own, items: bundle.items }, [])).toEqual({ ...own, items: bundle.items });
});
