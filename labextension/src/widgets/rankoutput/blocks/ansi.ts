/**
 * ANSI colors in text that arrives in pieces: the style at the end of a piece
 * applies to the next. Uses the class names of JupyterLab's own renderer, so
 * that its themes apply.
 */

/** The current style; immutable. */
export interface IAnsiStyle {
  readonly fg: Colour;
  readonly bg: Colour;
  readonly bold: boolean;
  readonly underline: boolean;
  readonly inverse: boolean;
}

/** An index of the 16 colors, an RGB value, or none. */
type Colour = number | string | null;

export interface IAnsiSegment {
  text: string;
  style: IAnsiStyle;
}

export const PLAIN: IAnsiStyle = {
  fg: null,
  bg: null,
  bold: false,
  underline: false,
  inverse: false
};

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

// Other control sequences (cursor movement ...) have no meaning in a cell. The rest of unfinished ones is text, without
// the escape characters: thousands of them take the browser seconds to lay out.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b\[([0-9;:?]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b/g;

/** Split a text into pieces of one style each; returns the style at its end. */
export function parseAnsi(text: string, start: IAnsiStyle = PLAIN): { segments: IAnsiSegment[]; style: IAnsiStyle } {
  if (!text.includes('\x1b')) {
    return { segments: text ? [{ text, style: start }] : [], style: start };
  }
  const segments: IAnsiSegment[] = [];
  let style = start;
  let position = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    if (match.index > position) {
      segments.push({ text: text.slice(position, match.index), style });
    }
    position = match.index + match[0].length;
    if (match[2] === 'm') {
      style = applySgr(style, match[1]);
    }
  }
  if (position < text.length) {
    segments.push({ text: text.slice(position), style });
  }
  return { segments, style };
}

/** The classes and, for colors beyond the 16, the inline style of a piece. */
export function ansiAttributes(style: IAnsiStyle): {
  classes: string[];
  css: string;
} {
  const classes: string[] = [];
  const css: string[] = [];
  // Like terminals: bold text in one of the eight colors is bright.
  const bright = (colour: Colour): Colour =>
    style.bold && typeof colour === 'number' && colour < 8 ? colour + 8 : colour;
  const [fg, bg] = style.inverse ? [style.bg, bright(style.fg)] : [bright(style.fg), style.bg];
  addColour(fg, 'fg', style.inverse, classes, css);
  addColour(bg, 'bg', style.inverse, classes, css);
  if (style.bold) {
    classes.push('ansi-bold');
  }
  if (style.underline) {
    classes.push('ansi-underline');
  }
  return { classes, css: css.join(';') };
}

function addColour(colour: Colour, layer: 'fg' | 'bg', inverse: boolean, classes: string[], css: string[]): void {
  if (typeof colour === 'number') {
    const intense = colour >= 8 ? '-intense' : '';
    classes.push(`ansi-${NAMES[colour % 8]}${intense}-${layer}`);
  } else if (colour !== null) {
    css.push(`${layer === 'fg' ? 'color' : 'background-color'}:${colour}`);
  } else if (inverse) {
    classes.push(`ansi-default-inverse-${layer}`);
  }
}

function applySgr(start: IAnsiStyle, parameters: string): IAnsiStyle {
  const codes = parameters.split(/[;:]/).map(code => Number(code || 0));
  let style = start;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i];
    if (code === 38 || code === 48) {
      const [colour, used] = extendedColour(codes, i + 1);
      style = { ...style, [code === 38 ? 'fg' : 'bg']: colour };
      i += used;
    } else {
      style = applyCode(style, code);
    }
  }
  return style;
}

const SWITCHES: Record<number, Partial<IAnsiStyle>> = {
  1: { bold: true },
  4: { underline: true },
  7: { inverse: true },
  21: { bold: false },
  22: { bold: false },
  24: { underline: false },
  27: { inverse: false },
  39: { fg: null },
  49: { bg: null }
};

function applyCode(style: IAnsiStyle, code: number): IAnsiStyle {
  if (code === 0) {
    return PLAIN;
  }
  const bases: [number, 'fg' | 'bg', number][] = [
    [30, 'fg', 0],
    [40, 'bg', 0],
    [90, 'fg', 8],
    [100, 'bg', 8]
  ];
  for (const [base, layer, offset] of bases) {
    if (code >= base && code < base + 8) {
      return { ...style, [layer]: code - base + offset };
    }
  }
  return { ...style, ...SWITCHES[code] };
}

/** 5;n (256 colors) or 2;r;g;b, from `at`, and the number of codes used. */
function extendedColour(codes: number[], at: number): [Colour, number] {
  if (codes[at] === 2) {
    const [r, g, b] = [1, 2, 3].map(i => Math.min(255, codes[at + i] || 0));
    return [`rgb(${r},${g},${b})`, 4];
  }
  if (codes[at] !== 5) {
    return [null, codes.length];
  }
  const n = Math.min(255, codes[at + 1] || 0);
  if (n < 16) {
    return [n, 2];
  }
  if (n >= 232) {
    const grey = (n - 232) * 10 + 8;
    return [`rgb(${grey},${grey},${grey})`, 2];
  }
  const level = (v: number): number => (v === 0 ? 0 : v * 40 + 55);
  const cube = n - 16;
  const [r, g, b] = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6];
  return [`rgb(${level(r)},${level(g)},${level(b)})`, 2];
}
