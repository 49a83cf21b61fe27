-- Roles for a board in PostgreSQL, with the least rights that work. Run this once in the database of the board, as its
-- owner or a superuser:
--
--     createdb --encoding=UTF8 --template=template0 surehand
--     psql -d surehand -f postgres-roles.sql
--     psql -d surehand -c '\password surehand_owner'

-- Owns the tables, and creates and migrates them. Use it once for each new version that changes the tables:
--     SUREHAND_BOARD_URL=postgres://surehand_owner@HOST/surehand surehand board
CREATE ROLE surehand_owner LOGIN;
CREATE SCHEMA surehand AUTHORIZATION surehand_owner;

-- What agents may do: read and write rows. They cannot create, change or drop a table.
CREATE ROLE surehand_agent NOLOGIN;
GRANT USAGE ON SCHEMA surehand TO surehand_agent;
ALTER DEFAULT PRIVILEGES FOR ROLE surehand_owner IN SCHEMA surehand
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO surehand_agent;

-- One user for each person or machine, so that access can be taken away:
--     CREATE ROLE alice LOGIN IN ROLE surehand_agent;
--     \password alice
