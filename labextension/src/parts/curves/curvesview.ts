/** The charts of an output, with buttons for lines of single ranks and for a file. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CurveReader } from './model/reader';
import type { Curve } from './model/series';
import { csvOf } from './model/curvetable';
import { hueOf } from '../../widgets/states/rankcolor';
import { saveBlob } from '../../widgets/base/savefile';
import { onThemeChange } from '../../widgets/base/themes';
import { CurveChart } from './chart';

/** The charts are drawn at most this often. */
const EVERY_MS = 250;
/** Further ones are only in the file. */
const MAX_CHARTS = 24;

export class CurvesView {
  constructor(
    host: HTMLElement,
    private readonly _trans: TranslationBundle,
    /** Opens these curves in a tab; null where they cannot be. */
    private readonly _opener: () => (() => void) | null = () => null
  ) {
    this._bar.className = 'jpd-Curves-bar';
    this._bar.setAttribute('role', 'toolbar');
    this._bar.setAttribute('aria-label', _trans.__('Lines of single ranks'));
    this._bar.addEventListener('keydown', event => this._onKeyDown(event));
    this._charts.className = 'jpd-Curves-charts';
    this._note.className = 'jpd-Curves-note';
    this._note.setAttribute('role', 'note');
    host.replaceChildren(this._bar, this._charts, this._note);
  }

  /** Draw what was read, soon. */
  update(reader: CurveReader): void {
    this._reader = reader;
    if (this._timer === undefined && (reader !== this._drawn || reader.version !== this._version)) {
      const wait = Math.max(0, this._last + EVERY_MS - performance.now());
      this._timer = setTimeout(() => {
        this._timer = undefined;
        this._draw();
      }, wait);
    }
  }

  /** Draw nothing. */
  clear(): void {
    clearTimeout(this._timer);
    this._timer = undefined;
    cancelAnimationFrame(this._frame);
    this._byName.forEach(chart => chart.dispose());
    this._byName.clear();
    this._bar.replaceChildren();
    this._note.textContent = '';
    this._ranks = [];
    this._drawn = null;
  }

  dispose(): void {
    this.clear();
    this._themes.dispose();
  }

  private _draw(): void {
    const reader = this._reader!;
    if (this._drawn !== reader) {
      this._byName.forEach(chart => chart.dispose());
      this._byName.clear();
      this._drawn = reader;
    }
    this._version = reader.version;
    const all = reader.curves;
    const curves = all.slice(0, MAX_CHARTS);
    this._setRanks([...new Set(all.flatMap(({ ranks }) => [...ranks.keys()]))].sort((a, b) => a - b));
    this._say(reader.numMissed, all.length - curves.length);
    cancelAnimationFrame(this._frame);
    this._drawNext(curves);
  }

  /** One chart in a frame. */
  private _drawNext([curve, ...rest]: readonly Curve[]): void {
    this._last = performance.now();
    if (!curve) {
      return;
    }
    let chart = this._byName.get(curve.name);
    if (!chart) {
      chart = new CurveChart(this._trans, `jpd-curves-${this._id}`);
      this._byName.set(curve.name, chart);
      this._charts.append(chart.node);
    }
    chart.update(curve, this._shown);
    this._frame = requestAnimationFrame(() => this._drawNext(rest));
  }

  private _setRanks(ranks: readonly number[]): void {
    if (ranks.join() === this._ranks.join()) {
      return;
    }
    this._ranks = ranks;
    const trans = this._trans;
    const all = this._button(trans.__('All ranks'), () => this._toggle(ranks));
    const file = this._button(trans.__('Save as CSV'), () => this._save());
    file.classList.add('jpd-mod-file');
    const open = this._opener();
    const opening = open ? [this._button(trans.__('Open in a tab'), open)] : [];
    const each = ranks.map(rank => {
      const button = this._button(String(rank), () => this._toggle([rank]));
      button.classList.add('jpd-Curves-rank');
      button.dataset.rank = button.textContent!;
      button.dataset.hue = hueOf(rank);
      button.setAttribute('aria-label', trans.__('Line of rank %1', rank));
      button.setAttribute('aria-pressed', String(this._shown.has(rank)));
      return button;
    });
    this._bar.replaceChildren(...(ranks.length > 1 ? [...each, all] : []), ...opening, file);
    // The bar is one stop of the tab key; arrow keys move inside it.
    [...this._bar.children].forEach((button, i) => ((button as HTMLElement).tabIndex = i === 0 ? 0 : -1));
  }

  private _button(text: string, act: () => void): HTMLButtonElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-Ranks-action';
    button.textContent = text;
    button.onclick = act;
    return button;
  }

  /** Show the lines of these ranks, or hide them if all are shown. */
  private _toggle(ranks: readonly number[]): void {
    const isOn = !ranks.every(rank => this._shown.has(rank));
    ranks.forEach(rank => (isOn ? this._shown.add(rank) : this._shown.delete(rank)));
    for (const button of this._bar.querySelectorAll<HTMLElement>('[data-rank]')) {
      button.setAttribute('aria-pressed', String(this._shown.has(Number(button.dataset.rank))));
    }
    this._draw();
  }

  private _save(): void {
    saveBlob(new Blob([csvOf(this._reader!.curves)], { type: 'text/csv' }), 'curves.csv');
  }

  private _say(numMissed: number, numMore: number): void {
    const trans = this._trans;
    const notes = [
      ...(numMissed > 0
        ? [
            trans._n(
              '%1 line is only in the log: its numbers are missing here.',
              '%1 lines are only in the logs: their numbers are missing here.',
              numMissed,
              numMissed.toLocaleString()
            )
          ]
        : []),
      ...(numMore > 0 ? [trans._n('%1 more curve is in the file.', '%1 more curves are in the file.', numMore)] : [])
    ];
    const text = notes.join(' ');
    if (this._note.textContent !== text) {
      this._note.textContent = text;
    }
  }

  private _onKeyDown(event: KeyboardEvent): void {
    const buttons = [...this._bar.children] as HTMLElement[];
    const at = buttons.indexOf(event.target as HTMLElement);
    const num = buttons.length;
    const next: Record<string, number> = {
      ArrowLeft: (at - 1 + num) % num,
      ArrowRight: (at + 1) % num,
      Home: 0,
      End: num - 1
    };
    if (at < 0 || !(event.key in next)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    buttons.forEach((button, i) => (button.tabIndex = i === next[event.key] ? 0 : -1));
    buttons[next[event.key]].focus();
  }

  private readonly _bar = document.createElement('div');
  private readonly _byName = new Map<string, CurveChart>();
  private readonly _charts = document.createElement('div');
  private _drawn: CurveReader | null = null;
  private _frame = 0;
  private readonly _id = nextId++;
  private _last = 0;
  private readonly _note = document.createElement('div');
  private _ranks: readonly number[] = [];
  private _reader: CurveReader | null = null;
  private readonly _shown = new Set<number>();
  private readonly _themes = onThemeChange(() => this._byName.forEach(chart => chart.rebuild()));
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _version = -1;
}

let nextId = 0;
