/** The theme's colors and fonts for charts. */

/** The colors and fonts of a chart. */
export interface IColours {
  readonly line: string;
  readonly faint: string;
  readonly band: string;
  readonly text: string;
  readonly grid: string;
  readonly mark: string;
  readonly font: string;
  readonly markFont: string;
}

/** Read the current theme, because a canvas does not follow CSS. */
export function readColours(node: HTMLElement): IColours {
  const style = getComputedStyle(node);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const family = style.fontFamily;
  const scale = window.devicePixelRatio || 1;
  return {
    line: read('--jp-brand-color1'),
    faint: read('--jp-border-color1'),
    band: `color-mix(in srgb, ${read('--jp-brand-color1')} 25%, transparent)`,
    text: read('--jp-ui-font-color2'),
    grid: read('--jp-border-color2'),
    mark: read('--jp-border-color1'),
    font: `10px ${family}`,
    markFont: `${9 * scale}px ${family}`
  };
}
