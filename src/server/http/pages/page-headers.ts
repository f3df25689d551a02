// Headers of every HTML page, besides those of every response.

export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
  // Pages of other origins that open this one, or that it opens, get no reference to its window.
  'cross-origin-opener-policy': 'same-origin',
  // The dashboard uses none of these, so neither can anything that gets into it.
  'permissions-policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), serial=(), usb=()',
}
