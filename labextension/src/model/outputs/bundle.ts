/** What a rank cell saves in the notebook: the MIME bundle and its text. */
import type { IDisplayData, IError } from '@jupyterlab/nbformat';
import {
  IErrorBody,
  IExecution,
  IGroup,
  IRanksBundle,
  ISavedItem,
  IViewItem,
  RANKS_MIME
} from '../../services/protocol';
import { streamText } from '../executions/executionview';
import { firstCharacters, lastCharacters, numCharacters } from '../format/characters';
import { Blocks, IBlock } from './blocks';
import { statusesApart } from './lateness';

/** The fallback text is for readers without this extension. */
export const MAX_FALLBACK_CHARS = 16000;
export const MAX_FALLBACK_LINES = 200;
const MIN_BLOCK_LINES = 10;

export function makeBundle(
  group: Pick<IGroup, 'id' | 'name' | 'world_size'>,
  execution: IExecution,
  items: readonly IViewItem[],
  error: IErrorBody | null = execution.error
): IRanksBundle {
  const { id, name, world_size } = group;
  return {
    version: 1,
    group: { id, name, world_size },
    execution_id: execution.id,
    ranks: execution.ranks,
    state: execution.state,
    statuses: statusesApart(execution),
    started_at: execution.started_at,
    ended_at: execution.ended_at,
    items: items.map(saved),
    ...(error ? { error } : {})
  };
}

/** The output that holds a bundle. */
export function bundleOutput(bundle: IRanksBundle): IDisplayData {
  return {
    output_type: 'display_data',
    data: {
      [RANKS_MIME]: bundle as unknown as IDisplayData['data'][string],
      'text/plain': fallbackText(bundle)
    },
    metadata: {}
  };
}

/** The bundle as text, for readers that show plain text. Bounded. */
export function fallbackText(bundle: IRanksBundle): string {
  const lines = boundedBlocks(bundle.items, MAX_FALLBACK_LINES).flatMap(block => [
    `[${rankLabel(block.ranks)}]`,
    ...block.lines
  ]);
  if (bundle.error) {
    lines.push(`[${bundle.state}] ${bundle.error.message}`);
  } else if (lines.length === 0) {
    lines.push(`[${rankLabel(bundle.ranks)}] ${bundle.state}`);
  }
  return bounded(lines);
}

/** The text of items, in blocks of the same ranks; if it is long, each of several blocks keeps its share. */
export function boundedBlocks(items: readonly ISavedItem[], maxLines: number): IBlock[] {
  const blocks = blocksOf(items);
  const numLines = blocks.reduce((sum, block) => sum + block.lines.length + 1, 0);
  const isLong = numLines > maxLines && blocks.length > 1;
  const share = isLong ? Math.max(MIN_BLOCK_LINES, Math.floor(maxLines / blocks.length) - 2) : Infinity;
  return blocks.map(({ ranks, lines }) => ({ ranks, lines: ends(lines, share) }));
}

function blocksOf(items: readonly ISavedItem[]): IBlock[] {
  const blocks = new Blocks();
  for (const item of items) {
    const text = itemText(item).replace(/\n$/, '');
    if (text && item.output?.output_type === 'stream') {
      blocks.addText(item.ranks, text);
    } else if (text) {
      blocks.addOutput(item.ranks, text);
    }
  }
  return blocks.close();
}

/** "rank 3" or "ranks 0-2": in files, never translated. */
export function rankLabel(ranks: string): string {
  return /^\d+$/.test(ranks) ? `rank ${ranks}` : `ranks ${ranks}`;
}

function saved({ ranks, output, elided }: IViewItem): ISavedItem {
  return output ? { ranks, output } : { ranks, elided };
}

/** An item as text: what is left out, too. */
export function itemText({ output, elided }: ISavedItem): string {
  if (elided) {
    return `... ${elided.lines} more lines (${elided.bytes} bytes) in the log of the rank`;
  }
  if (!output) {
    return '';
  }
  switch (output.output_type) {
    case 'stream':
      return withoutAnsi(streamText(output as Parameters<typeof streamText>[0]));
    case 'error': {
      const { ename, evalue, traceback } = output as IError;
      return withoutAnsi(traceback?.join('\n') || `${ename}: ${evalue}`);
    }
    default: {
      const text = (output.data as Record<string, unknown>)?.['text/plain'];
      return Array.isArray(text) ? text.join('') : String(text ?? '');
    }
  }
}

function withoutAnsi(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '');
}

/** The first and last lines, because an error is at the end. */
export function bounded(lines: string[], maxLines = MAX_FALLBACK_LINES, maxChars = MAX_FALLBACK_CHARS): string {
  const text = ends(lines, maxLines).join('\n');
  if (numCharacters(text) <= maxChars) {
    return text;
  }
  const half = Math.floor(maxChars / 2);
  return `${firstCharacters(text, half)}\n...\n${lastCharacters(text, half)}`;
}

function ends(lines: string[], max: number): string[] {
  if (lines.length <= max) {
    return lines;
  }
  const half = Math.floor(max / 2);
  const missing = lines.length - 2 * half;
  return [...lines.slice(0, half), `... ${missing} lines ...`, ...lines.slice(-half)];
}
