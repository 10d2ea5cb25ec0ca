-- The hub's role and its limits, which a pooler in transaction mode can't set for each connection.
CREATE ROLE memoryhub LOGIN PASSWORD '${password}';
ALTER ROLE memoryhub SET lock_timeout = '5s';
ALTER ROLE memoryhub SET idle_in_transaction_session_timeout = '30s';
CREATE DATABASE memoryhub OWNER memoryhub;
