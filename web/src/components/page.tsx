// The frame of a page inside the shell: its title, heading, and what can be done at the top.
import { Group, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import type { ReactNode } from 'react'

interface PageProps {
  title: string
  /** Which workspace, where it is about one. */
  of?: string
  lead?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

export function Page({ title, of, lead, actions, children }: PageProps) {
  useDocumentTitle([title, of, 'Adit'].filter((part) => part && part !== '').join(' · '))
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-start" gap="sm">
        <Stack gap={4} flex="1 1 280px" miw={0}>
          <Title order={1} size="h2" tabIndex={-1}>
            {title}
          </Title>
          {lead && (
            <Text c="dimmed" size="sm" maw={640}>
              {lead}
            </Text>
          )}
        </Stack>
        {actions && <Group gap="sm">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  )
}
