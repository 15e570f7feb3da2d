/** Badges of cells: the cell's target where it differs from the notebook's, and badges of other extensions. */
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { guarded } from '../../model/contributions';
import { getCellTarget } from '../../model/targets/target';
import type { ICellBadge, IDistCellBadges } from '../../tokens';
import { rankSetLabel } from '../rankoutput/items/itemrow';

interface IBadge {
  readonly text: string;
  readonly title?: string;
}

/** The badges of one notebook. */
export class CellBadges implements IDisposable {
  constructor(panel: NotebookPanel, trans: TranslationBundle, added: IDistCellBadges) {
    this._panel = panel;
    this._trans = trans;
    this._added = added;
    panel.content.modelContentChanged.connect(this._follow, this);
    added.changed.connect(this._onAdded, this);
    void panel.revealed.then(() => this._onAdded());
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _onAdded(): void {
    for (const badge of this._added.items) {
      // Connecting again does nothing.
      badge.changed?.connect(this._updateAll, this);
    }
    this._updateAll();
  }

  private _updateAll(): void {
    this._follow();
    for (const cell of this._isDisposed ? [] : this._panel.content.widgets) {
      this._update(cell);
    }
  }

  /** Follow new cells, each once. */
  private _follow(): void {
    if (this._isDisposed) {
      return;
    }
    for (const cell of this._panel.content.widgets) {
      if (cell.model?.type === 'code' && !this._badges.has(cell)) {
        this._badges.set(cell, null);
        cell.model.metadataChanged.connect(() => this._update(cell), this);
        this._update(cell);
      }
    }
  }

  private _update(cell: Cell): void {
    if (!this._badges.has(cell)) {
      return;
    }
    const model = cell.model as ICodeCellModel;
    const badges = [this._target(model), ...this._added.items.map(added => describe(added, model))];
    const shown = badges.filter(badge => badge !== null);
    let node = this._badges.get(cell) ?? null;
    if (shown.length > 0 && !node) {
      node = document.createElement('div');
      node.className = 'jpd-CellBadges';
      cell.node.append(node);
    } else if (shown.length === 0) {
      node?.remove();
      node = null;
    }
    this._badges.set(cell, node);
    node?.replaceChildren(...shown.map(badgeNode));
  }

  private _target(cell: ICodeCellModel): IBadge | null {
    const own = getCellTarget(cell);
    if (!own) {
      return null;
    }
    const { _trans: trans } = this;
    const text =
      'target' in own
        ? trans.__('kernel')
        : own.ranks === 'all'
          ? trans.__('all ranks')
          : rankSetLabel(trans, own.ranks);
    const title =
      'group' in own && own.group
        ? trans.__('This cell runs on: %1 of %2', text, own.group)
        : trans.__('This cell runs on: %1', text);
    return { text, title };
  }

  private readonly _added: IDistCellBadges;
  private _badges = new WeakMap<Cell, HTMLElement | null>();
  private _isDisposed = false;
  private _panel: NotebookPanel;
  private _trans: TranslationBundle;
}

function badgeNode({ text, title }: IBadge): HTMLElement {
  const node = document.createElement('div');
  node.className = 'jpd-CellBadge';
  node.setAttribute('role', 'note');
  node.textContent = text;
  node.title = title ?? text;
  node.setAttribute('aria-label', node.title);
  return node;
}

function describe(badge: ICellBadge, cell: ICodeCellModel): IBadge | null {
  return guarded(`the cell badge '${badge.id}'`, () => badge.describe(cell), null);
}
