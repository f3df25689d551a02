// Starts the page: the nonce that lets styles in, the theme, what is remembered, and the routes.
import '@mantine/core/styles.css'
import './base.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { App } from './app.tsx'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { prefix } from './paths.ts'
import { queryClient } from './queries.ts'
import { cssVariables, theme } from './theme.ts'

const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content ?? ''
// react-remove-scroll, below Mantine's dialogs, writes a style element and looks for its nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce })

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <ErrorBoundary>
        <QueryClientProvider client={queryClient}>
          <Router base={prefix}>
            <App />
          </Router>
        </QueryClientProvider>
      </ErrorBoundary>
    </MantineProvider>
  </StrictMode>,
)
