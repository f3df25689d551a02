// Starts Scalar on an OpenAPI document of this server. Everything that would contact another server is off.

/** The links in the bar choose the API: `docs?api=workspace`. */
const api = new URLSearchParams(location.search).get('api') === 'workspace' ? 'workspace' : 'v1'
const prefixes = { v1: 'api/v1', workspace: 'workspace/v1' }
document.querySelector(`.docs-apis a[href$="=${api}"]`).setAttribute('aria-current', 'page')

Scalar.createApiReference('#reference', {
  url: new URL(`${prefixes[api]}/openapi.json`, document.baseURI).href,
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  hideModels: true,
  persistAuth: false,
  documentDownloadType: 'json',
  defaultOpenAllTags: true,
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
})

// ARIA that Scalar gets wrong: which elements, which attribute, and its value (null removes it).
const ARIA_FIXES = [
  // Landmarks that repeat with the same name.
  ['.response-card[role="region"]', 'role', 'group'],
  ['.scalar-client section:not([role])', 'role', 'group'],
  ['[role="combobox"]:not([aria-expanded])', 'role', 'textbox'],
  ['.cm-content:not([aria-label])', 'aria-label', 'Response body'],
  ['.cm-scroller[tabindex="-1"]', 'tabindex', '0'],
  ['button[role="none"]', 'role', null],
  ['.scalar-client button[class*="copy-button"][aria-controls]', 'aria-controls', null],
]

function fixAria() {
  for (const [selector, name, value] of ARIA_FIXES)
    for (const element of document.querySelectorAll(selector))
      if (value === null) element.removeAttribute(name)
      else element.setAttribute(name, value)
}

new MutationObserver(fixAria).observe(document.body, { childList: true, subtree: true })
