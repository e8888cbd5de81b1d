// MyST marks the rest of a page as text. Wide equations break at operators where there is room, and scroll on narrow
// screens.
window.MathJax = {
  loader: { paths: { fonts: '[mathjax]' } },
  options: { processHtmlClass: 'math', enableMenu: false, enableExplorer: false, enableSpeech: false },
  output: { displayOverflow: window.innerWidth < 736 ? 'scroll' : 'linebreak' },
};
