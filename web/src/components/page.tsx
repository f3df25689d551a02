// Layout of a page inside the shell: document title, heading, description and actions.
import { Group, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import type { ReactNode } from 'react'

interface PageProps {
  title: string
  /** Second part of the document title, e.g. the name of the workspace. */
  context?: string
  description?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

export function Page({ title, context, description, actions, children }: PageProps) {
  useDocumentTitle([title, context, 'Adit'].filter(Boolean).join(' · '))
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-start" gap="sm">
        <Stack gap={4} flex="1 1 280px" miw={0}>
          <Title order={1} size="h2" tabIndex={-1}>
            {title}
          </Title>
          {description && (
            <Text c="dimmed" size="sm" maw={640}>
              {description}
            </Text>
          )}
        </Stack>
        {actions && <Group gap="sm">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  )
}
