/** Functions on the blocks of a log's window. */
import type { IExecutionBlock, LogBlock } from './logblocks';

/** How many lines and characters the blocks show. */
export function measure(blocks: readonly LogBlock[]): { lines: number; characters: number } {
  let lines = 0;
  let characters = 0;
  for (const block of blocks) {
    lines += block.lines;
    characters += block.characters;
  }
  return { lines, characters };
}

/** The first block that starts with a record; kept separators are ignored. */
export function boundary(blocks: readonly LogBlock[]): number {
  const isKept = (at: number) => {
    const block = blocks[at];
    return block.kind === 'execution' && block.continued;
  };
  const isWhole = (at: number) => !blocks[at].continues && !(isKept(at) && blocks[at + 1]?.continues);
  let at = 0;
  while (at < blocks.length && !isWhole(at)) {
    at += 1;
  }
  return at;
}

/** The removed separator of the execution that the first remaining block belongs to. */
export function lostSeparator(gone: readonly LogBlock[], blocks: readonly LogBlock[]): IExecutionBlock | null {
  const top = blocks[0];
  if (top.kind === 'execution' || top.executionId === null) {
    return null;
  }
  const found = [...gone].reverse().find(b => b.kind === 'execution' && b.executionId === top.executionId);
  return found?.kind === 'execution' ? found : null;
}
