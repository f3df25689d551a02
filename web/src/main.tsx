// Entry point of the dashboard.
import '@mantine/core/styles.css'
import './base.css'
import { Router } from 'wouter'
import { App } from './app.tsx'
import { Toasts } from './components/toast.tsx'
import { mount } from './mount.tsx'
import { prefix } from './paths.ts'
import { queryClient } from './queries.ts'

mount(
  queryClient,
  <Router base={prefix}>
    <App />
    <Toasts />
  </Router>,
)
