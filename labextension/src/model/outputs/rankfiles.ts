/** The output of a rank as text, and its figures and tables as files. Pure. */
import type { IMimeBundle } from '@jupyterlab/nbformat';
import type { ISavedItem } from '../../services/protocol';
import { itemText } from './bundle';
import { isFigure } from './sidebyside';

/** Something to save. */
export interface IRankFile {
  name: string;
  type: string;
  content: string;
  isBase64: boolean;
}

/** What figures are saved as, the best first: without a loss, as large as wanted. */
const KINDS: readonly (readonly [string, string])[] = [
  ['image/svg+xml', 'svg'],
  ['application/pdf', 'pdf'],
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/webp', 'webp'],
  ['image/gif', 'gif'],
  ['text/html', 'html']
];

/** A rank's output as text, with a note where lines are left out. */
export function textOf(items: readonly ISavedItem[]): string {
  let text = '';
  for (const item of items) {
    const isStream = item.output?.output_type === 'stream';
    const own = itemText(item);
    const begin = !isStream && text !== '' && !text.endsWith('\n') ? '\n' : '';
    const end = !isStream && own !== '' && !own.endsWith('\n') ? '\n' : '';
    text += begin + own + end;
  }
  return text;
}

/** A file for the text, and one for each figure. */
export function filesOf(items: readonly ISavedItem[], rank: number): IRankFile[] {
  const text = textOf(items);
  const files: IRankFile[] = text
    ? [{ name: `rank-${rank}.txt`, type: 'text/plain', content: text, isBase64: false }]
    : [];
  const data = items.filter(({ output }) => isFigure(output)).map(({ output }) => output!.data as IMimeBundle);
  data.forEach((bundle, i) => {
    const [type, ending] = KINDS.find(([kind]) => kind in bundle) ?? ['', ''];
    const content = bundle[type];
    if (typeof content === 'string' || Array.isArray(content)) {
      const isBase64 = !type.startsWith('text/') && type !== 'image/svg+xml';
      files.push({
        name: `rank-${rank}-figure-${i + 1}.${ending}`,
        type,
        content: [content].flat().join(''),
        isBase64
      });
    }
  });
  return files;
}
