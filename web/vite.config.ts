// Builds the dashboard's page into web/dist, where the server picks it up.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  // Relative to <base>, which the server writes, so that one build serves below any path.
  base: './',
  plugins: [
    react(),
    {
      name: 'what-the-server-writes',
      apply: 'serve',
      transformIndexHtml: (html) => html.replace('__BASE__', '').replace('__CSP_NONCE__', ''),
    },
  ],
  server: { proxy: { '/dashboard/api': 'http://127.0.0.1:8080' } },
  build: {
    target: ['chrome120', 'firefox121', 'safari17'],
    // The policy allows no inline script and no data: font.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    chunkSizeWarningLimit: 700,
  },
})
