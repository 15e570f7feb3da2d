/**
 * How much of the picker is shown in the toolbar. The toolbar moves items without room into its menu, which would hide the
 * ranks of the next cell: the picker shrinks before that.
 */
import type { ReactiveToolbar } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Widget } from '@lumino/widgets';

/** How much its button shows: `wide`, or `narrow`, where longer texts are cut. */
export type ChoiceForm = 'wide' | 'narrow';

/** The toolbar's padding, and the button of its menu. */
const RESERVED = 7 + 32;

/** The width of a form at JupyterLab's default font size; larger measured widths take precedence. */
function estimate(size: number): number {
  return size === 0 ? 240 : 140;
}

/** The widest form that fits. */
export function formFor(room: number, size: number, seen: ReadonlyMap<string, number> = new Map()): ChoiceForm {
  return (seen.get(`wide ${size}`) ?? estimate(size)) <= room ? 'wide' : 'narrow';
}

/** A widget that may have several forms. */
export type Fitting = Widget & { form?: ChoiceForm };

/** Keeps the second part of a picker in the toolbar, after the first, in the widest form that fits. */
export class ToolbarFit implements IDisposable {
  constructor(toolbar: ReactiveToolbar, choice: Fitting, before: string, name: string) {
    this._toolbar = toolbar;
    this._choice = choice;
    this._before = before;
    this._name = name;
    this._resized = new ResizeObserver(() => this._fit());
    this._resized.observe(toolbar.node);
    this._resized.observe(choice.node);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._resized.disconnect();
  }

  /** Show the choice for a group with this many ranks; null: hide it. */
  show(size: number | null): void {
    this._size = size;
    this._fit();
  }

  private _fit(): void {
    const { _choice: choice, _size: size } = this;
    if (this._isDisposed) {
      return;
    }
    if (size === null) {
      // Without a look at the room, which would have the page laid out while a notebook is opened.
      this._put(null);
      return;
    }
    const room = this._room();
    if (room === null) {
      return;
    }
    if (choice.form && choice.parent === this._toolbar && choice.node.offsetWidth > 0) {
      this._seen.set(`${choice.form} ${this._shown}`, choice.node.offsetWidth);
    }
    this._put(formFor(room, size, this._seen));
  }

  /** The room after the first part; null if the toolbar is not on the page. */
  private _room(): number | null {
    const { node } = this._toolbar;
    if (node.clientWidth === 0) {
      return null;
    }
    let room = node.clientWidth - RESERVED;
    for (const child of node.children) {
      if (child === this._choice.node) {
        break;
      }
      this._watch(child);
      room -= (child as HTMLElement).offsetWidth;
      if ((child as HTMLElement).dataset.jpItemName === this._before) {
        break;
      }
    }
    return room;
  }

  /** Items before the choice may change their width: a select that shows another group's name. */
  private _watch(child: Element): void {
    if (!this._watched.has(child)) {
      this._watched.add(child);
      this._resized.observe(child);
    }
  }

  /** Insert the choice again in another form or for another group, because the toolbar measures items on insertion. */
  private _put(form: ChoiceForm | null): void {
    const { _choice: choice, _toolbar: toolbar } = this;
    const key = form && `${form} ${this._size}`;
    if (key === this._key) {
      return;
    }
    this._key = key;
    this._shown = this._size;
    if (choice.parent && choice.parent !== toolbar) {
      // If it is in the toolbar's menu, the toolbar would keep using its old width.
      toolbar.insertAfter(this._before, this._name, choice);
    }
    choice.parent = null;
    if (form && 'form' in choice) {
      choice.form = form;
    }
    if (form && !toolbar.insertAfter(this._before, this._name, choice)) {
      toolbar.addItem(this._name, choice);
    }
  }

  private readonly _before: string;
  private readonly _choice: Fitting;
  private _isDisposed = false;
  private _key: string | null = null;
  private readonly _name: string;
  private readonly _resized: ResizeObserver;
  private readonly _seen = new Map<string, number>();
  private _shown: number | null = null;
  private _size: number | null = null;
  private readonly _toolbar: ReactiveToolbar;
  private readonly _watched = new WeakSet<Element>();
}
