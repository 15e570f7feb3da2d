/** The extension's own icons; colors follow the theme through JupyterLab's icon classes. */
import { LabIcon } from '@jupyterlab/ui-components';

/** Four ranks on one bus. */
export const ranksIcon = new LabIcon({
  name: 'jupyter-dist:ranks',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="3" y="4" width="3" height="10" rx="1"/>
    <rect x="8" y="7" width="3" height="7" rx="1"/>
    <rect x="13" y="4" width="3" height="10" rx="1"/>
    <rect x="18" y="9" width="3" height="5" rx="1"/>
    <rect x="3" y="17" width="18" height="2" rx="1"/>
  </g>
</svg>`
});

/** An empty page. JupyterLab's own icon has a mask with an id, which fails when the first of several is hidden. */
export const clearViewIcon = new LabIcon({
  name: 'jupyter-dist:clear-view',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <path class="jp-icon3" fill="#616161" d="M12 2a10 10 0 1 0 0 20a10 10 0 0 0 0-20zm0 2c1.85 0 3.55.63 4.9 1.69L5.69 16.9A8 8 0 0 1 12 4zm0 16a7.9 7.9 0 0 1-4.9-1.69L18.31 7.1A8 8 0 0 1 12 20z"/>
</svg>`
});
