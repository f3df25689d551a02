// Entry point: mounts the app with its theme, query client and router.
import '@mantine/core/styles.css'
import './base.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { App } from './app.tsx'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { Toasts } from './components/toast.tsx'
import { prefix } from './paths.ts'
import { queryClient } from './queries.ts'
import { cssVariables, theme } from './theme.ts'

const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content ?? ''
// react-remove-scroll, which Mantine's dialogs use, adds a style element and reads its nonce from here.
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
            <Toasts />
          </Router>
        </QueryClientProvider>
      </ErrorBoundary>
    </MantineProvider>
  </StrictMode>,
)
