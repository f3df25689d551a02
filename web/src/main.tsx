// Starts the page: the nonce that lets styles in, the theme, what is remembered, and the routes.
import '@mantine/core/styles.css'
import './base.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { prefix } from './address.ts'
import { App } from './app.tsx'
import { Mishap } from './parts/mishap.tsx'
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
      <Mishap>
        <QueryClientProvider client={queryClient}>
          <Router base={prefix}>
            <App />
          </Router>
        </QueryClientProvider>
      </Mishap>
    </MantineProvider>
  </StrictMode>,
)
