/** One item: a label in the gutter, and the output. */
import type { IStream } from '@jupyterlab/nbformat';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatBytes } from '../../../model/format/quantities';
import { lowestRank, shortRanks } from '../../../model/format/ranks';
import { isFigure } from '../../../model/outputs/sidebyside';
import { streamText } from '../../../model/executions/executionview';
import type { ICondensed } from '../../../model/numbers/condense';
import type { IElided } from '../../../services/protocol';
import { BlockLayout, RichBlock } from '../blocks/richblock';
import { hueOf } from '../../states/rankcolor';
import type { IShownItem } from './shown';
import { NumbersLine } from '../blocks/numbersline';
import { StreamText } from '../blocks/streamtext';

export interface IRowContext {
  rendermime: IRenderMimeRegistry;
  trans: TranslationBundle;
  layout: BlockLayout;
  trusted: boolean;
  /** Open the full log of a rank. */
  openLog(rank: number): void;
  /** Show the exact lines of a condensed one, or hide them. */
  toggleExact(key: string): void;
  /** Show a figure or a table in the whole window. */
  enlarge(key: string): void;
}

export class ItemRow {
  constructor(private _context: IRowContext) {
    this.node = document.createElement('div');
    this.node.className = 'jpd-RankItem';
    this._label = document.createElement('div');
    this._label.className = 'jpd-RankItem-ranks';
    this._body = document.createElement('div');
    this._body.className = 'jpd-RankItem-body';
    this.node.append(this._label, this._body);
  }

  readonly node: HTMLElement;

  /** Show an item; `repeats`: the item above has the same ranks. */
  update(item: IShownItem, isCommon: boolean, repeats: boolean): void {
    this._setRanks(item.ranks, isCommon);
    this.node.classList.toggle('jpd-mod-repeats', repeats);
    const { condensed, output, elided } = item;
    const shown = condensed ?? output ?? elided ?? null;
    if (shown === this._shown) {
      return;
    }
    this._shown = shown;
    if (condensed) {
      this._showNumbers(condensed, item.key);
    } else if (elided) {
      this._showElided(elided, item.ranks);
    } else if (output?.output_type === 'stream') {
      this._showStream(output as IStream);
    } else if (output) {
      this._showRich(item);
    }
  }

  dispose(): void {
    this._rich?.dispose();
    this._rich = null;
    this.node.remove();
  }

  private _setRanks(ranks: string, isCommon: boolean): void {
    if (ranks === this._ranks && isCommon === this._isCommon) {
      return;
    }
    this._ranks = ranks;
    this._isCommon = isCommon;
    const { trans } = this._context;
    // Sets wrap between two numbers; long ones are shortened, and whole in the title.
    const parts = rankSetLabel(trans, shortRanks(ranks)).split(/(?<=,)/);
    this._label.replaceChildren(...parts.flatMap(part => [part, document.createElement('wbr')]));
    this._label.title = rankSetLabel(trans, ranks);
    this.node.classList.toggle('jpd-mod-common', isCommon);
    const lowest = lowestRank(ranks) ?? 0;
    this.node.dataset.hue = isCommon ? '' : hueOf(lowest);
  }

  private _setKind(kind: string): void {
    if (this.node.dataset.kind !== kind) {
      this._rich?.dispose();
      this._rich = null;
      this._stream = null;
      this._body.replaceChildren();
      this.node.dataset.kind = kind;
    }
  }

  private _showStream(output: IStream): void {
    this._setKind(output.name);
    if (!this._stream) {
      this._stream = new StreamText();
      this._body.append(textBox(output.name, this._stream.node));
    }
    this._stream.set(streamText(output));
  }

  private _showNumbers(condensed: ICondensed, key: string): void {
    this._setKind(condensed.name);
    const { trans, toggleExact } = this._context;
    const line = new NumbersLine(trans, condensed, () => toggleExact(key));
    this._body.replaceChildren(textBox(condensed.name, line.node));
  }

  private _showRich({ key, output, ranks }: IShownItem): void {
    this._setKind(output!.output_type === 'error' ? 'error' : isFigure(output) ? 'figure' : 'rich');
    if (this._rich) {
      this._rich.setOutput(output!);
      return;
    }
    const { rendermime, trans, trusted, layout } = this._context;
    this._rich = new RichBlock(rendermime, output!, trusted, figureOf(trans, ranks));
    layout.addWidget(this._rich, this._body);
    if (isFigure(output)) {
      this._addEnlarge(key);
    }
  }

  /** A click on a picture does the same. */
  private _addEnlarge(key: string): void {
    const { trans, enlarge } = this._context;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-RankItem-enlarge';
    button.title = button.ariaLabel = trans.__('Enlarge');
    button.dataset.lmSuppressShortcuts = 'true'; // Enter is for the button, not for the cell
    button.onclick = () => enlarge(key);
    this._rich!.node.addEventListener('click', event => {
      if ((event.target as Element).closest('img, .jp-RenderedSVG')) {
        enlarge(key);
      }
    });
    this._body.append(button);
  }

  private _showElided({ bytes, lines }: IElided, ranks: string): void {
    this._setKind('elided');
    const { trans, openLog } = this._context;
    const rank = lowestRank(ranks) ?? 0;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-RankItem-more';
    const count = lines.toLocaleString();
    button.textContent = trans._n(
      '\u2026 %1 more line (%2) in the log of rank %3',
      '\u2026 %1 more lines (%2) in the log of rank %3',
      lines,
      count,
      formatBytes(bytes),
      rank
    );
    button.title = trans.__('Open the full log of rank %1', rank);
    button.onclick = () => openLog(rank);
    this._body.replaceChildren(button);
  }

  private _body: HTMLElement;
  private _isCommon: boolean | null = null;
  private _label: HTMLElement;
  private _ranks: string | null = null;
  private _rich: RichBlock | null = null;
  private _shown: object | null = null;
  private _stream: StreamText | null = null;
}

/** JupyterLab's classes, with which its themes color ANSI text. */
function textBox(name: string, content: HTMLElement): HTMLElement {
  const box = document.createElement('div');
  box.className = 'jp-RenderedText';
  box.dataset.mimeType = `application/vnd.jupyter.${name === 'stderr' ? 'stderr' : 'stdout'}`;
  box.append(content);
  return box;
}

/** The text of a figure for screen readers. */
export function figureOf(trans: TranslationBundle, ranks: string): string {
  return trans.__('Figure of %1', rankSetLabel(trans, ranks));
}

/** "rank 3", "ranks 0-7". */
export function rankSetLabel(trans: TranslationBundle, ranks: string): string {
  return /^\d+$/.test(ranks) ? trans.__('rank %1', ranks) : trans.__('ranks %1', ranks);
}
