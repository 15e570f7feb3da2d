/** A figure or a table in the whole window; arrow keys show the other ranks' figures and tables. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { hueOf } from '../../states/rankcolor';
import { lowestRank } from '../../../model/format/ranks';
import { RichBlock } from '../blocks/richblock';
import { figureOf, rankSetLabel } from './itemrow';
import type { IShownItem } from './shown';

export interface ILightboxOptions {
  rendermime: IRenderMimeRegistry;
  trans: TranslationBundle;
  trusted: boolean;
}

export class Lightbox {
  constructor(
    private readonly _options: ILightboxOptions,
    private readonly _items: readonly IShownItem[]
  ) {
    const { trans } = _options;
    const node = (this._node = document.createElement('dialog'));
    node.className = 'jpd-Lightbox';
    this._title.className = 'jpd-Lightbox-title';
    this._title.setAttribute('role', 'status');
    this._host.className = 'jpd-Lightbox-content';
    this._host.tabIndex = -1;
    const head = document.createElement('div');
    head.className = 'jpd-Lightbox-head';
    const steps =
      _items.length > 1
        ? [
            button('\u2190', trans.__('Previous rank'), () => this._step(-1)),
            button('\u2192', trans.__('Next rank'), () => this._step(1))
          ]
        : [];
    head.append(
      this._title,
      ...steps,
      button('\u2715', trans.__('Close'), () => node.close())
    );
    node.append(head, this._host);
    node.addEventListener('keydown', event => this._onKeyDown(event));
    node.addEventListener('close', () => this._dispose());
    node.addEventListener('click', event => event.target === node && node.close()); // beside the content
  }

  /** Show one of the items; Escape closes it, and the focus is where it was. */
  open(at: number): void {
    document.body.append(this._node);
    this._node.showModal();
    this._show(at);
    this._host.focus();
  }

  private _show(at: number): void {
    const { rendermime, trans, trusted } = this._options;
    const { ranks, output } = this._items[at];
    this._at = at;
    const label = rankSetLabel(trans, ranks);
    this._node.setAttribute('aria-label', label);
    this._node.dataset.hue = hueOf(lowestRank(ranks) ?? 0);
    this._title.textContent =
      this._items.length > 1 ? trans.__('%1 (%2 of %3)', label, at + 1, this._items.length) : label;
    this._block?.dispose();
    this._block = new RichBlock(rendermime, output!, trusted, figureOf(trans, ranks));
    Widget.attach(this._block, this._host);
  }

  private _step(by: number): void {
    const num = this._items.length;
    this._show((this._at + by + num) % num);
  }

  private _onKeyDown(event: KeyboardEvent): void {
    const by: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      Home: -this._at,
      End: this._items.length - 1 - this._at
    };
    const isPlain = !event.ctrlKey && !event.altKey && !event.metaKey;
    if (isPlain && event.key in by && this._items.length > 1) {
      event.preventDefault();
      this._step(by[event.key]);
    }
    event.stopPropagation();
  }

  private _dispose(): void {
    this._block?.dispose();
    this._block = null;
    this._node.remove();
  }

  private _at = 0;
  private _block: RichBlock | null = null;
  private readonly _host = document.createElement('div');
  private readonly _node: HTMLDialogElement;
  private readonly _title = document.createElement('span');
}

function button(text: string, label: string, act: () => void): HTMLElement {
  const node = document.createElement('button');
  node.type = 'button';
  node.className = 'jpd-Lightbox-button';
  node.textContent = text;
  node.title = node.ariaLabel = label;
  node.onclick = act;
  return node;
}
