// Vite configuration of the dashboard: builds web/src into web/dist, which the server serves.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { apis } from '../src/contract/apis.ts'

const { prefix, operations } = apis.dashboard

export const buildOptions = {
  target: ['chrome120', 'firefox121', 'safari17'],
  // The Content-Security-Policy forbids inline scripts and data: fonts.
  modulePreload: { polyfill: false },
  assetsInlineLimit: 0,
  sourcemap: false,
  // React and the components of Mantine are most of the first chunk.
  chunkSizeWarningLimit: 700,
}

export default defineConfig({
  root: import.meta.dirname,
  // Relative to <base>, which the server fills in, so that one build works under any path prefix.
  base: './',
  define: {
    API_PREFIX: JSON.stringify(prefix),
    ROUTES: JSON.stringify(
      Object.fromEntries(operations.map(({ id, method, path }) => [id, `${method} ${path}`])),
    ),
  },
  plugins: [
    react(),
    {
      name: 'server-placeholders',
      apply: 'serve',
      transformIndexHtml: (html) => html.replace('__BASE__', '').replace('__CSP_NONCE__', ''),
    },
  ],
  build: buildOptions,
})
